"""Addresses of run pages, below the admin."""

from django.urls import path

from evals import gates, views

app_name = "runs"

urlpatterns = [
    path("gates/", gates.gates, name="gates"),
    path("gates/run/", gates.run_all, name="run_all"),
    path("start/<int:sheet_id>/", views.start, name="start"),
    path("of/<int:sheet_id>/", views.progress, name="progress"),
    path("<uuid:run_id>/", views.detail, name="detail"),
    path("<uuid:run_id>/cancel/", views.cancel, name="cancel"),
]
