"""Addresses of the delivery API."""

from django.urls import path

from factsheets.api import retrieve, usage, views

app_name = "api"

urlpatterns = [
    # First, for it is asked most.
    path("sheets/<slug:slug>/", views.current, name="current"),
    path("retrieve/", retrieve.RetrieveFromSeveralView.as_view(), name="retrieve-from-several"),
    path("sheets/", views.IndexView.as_view(), name="index"),
    path("sheets/<slug:slug>/prompt/", views.PromptView.as_view(), name="prompt"),
    path("sheets/<slug:slug>/publications/", views.PublicationsView.as_view(), name="publications"),
    path(
        "sheets/<slug:slug>/publications/<int:number>/",
        views.PublicationView.as_view(),
        name="publication",
    ),
    path("sheets/<slug:slug>/as-of/<str:moment>/", views.AsOfView.as_view(), name="as-of"),
    path(
        "sheets/<slug:slug>/publications/<int:number>/evidence/",
        views.EvidenceView.as_view(),
        name="evidence",
    ),
    path("sheets/<slug:slug>/retrieve/", retrieve.RetrieveView.as_view(), name="retrieve"),
    path("sheets/<slug:slug>/usage/", usage.UsageView.as_view(), name="usage"),
]
