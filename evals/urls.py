"""Addresses of run pages, below the admin."""

from django.urls import path

from evals import views

app_name = "runs"

urlpatterns = [
    path("start/<int:sheet_id>/", views.start, name="start"),
    path("of/<int:sheet_id>/", views.progress, name="progress"),
    path("<uuid:run_id>/", views.detail, name="detail"),
    path("<uuid:run_id>/cancel/", views.cancel, name="cancel"),
]
