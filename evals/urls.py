"""Addresses of run pages, below the admin."""

from django.urls import path

from evals import gates, question_pages, trial_pages, views

app_name = "runs"

urlpatterns = [
    path("gates/", gates.gates, name="gates"),
    path("gates/run/", gates.run_all, name="run_all"),
    path("start/<int:sheet_id>/", views.start, name="start"),
    path("of/<int:sheet_id>/", views.progress, name="progress"),
    path("questions/<int:set_id>/", question_pages.question_set, name="question_set"),
    path("questions/<int:set_id>/run/", question_pages.run_questions, name="run_questions"),
    path("questions/<int:set_id>/compare/", question_pages.compare_reports, name="compare_reports"),
    path("questions/<int:set_id>/copy/", question_pages.copy_questions, name="copy_questions"),
    path("retrieval/<int:report_id>/", question_pages.report, name="retrieval_report"),
    path(
        "questions/of/<int:sheet_id>/import/",
        question_pages.import_questions,
        name="import_questions",
    ),
    path("questions/<int:set_id>/trial/", trial_pages.start_trial, name="start_trial"),
    path("trials/<int:trial_id>/", trial_pages.trial, name="trial"),
    path("<uuid:run_id>/", views.detail, name="detail"),
    path("<uuid:run_id>/cancel/", views.cancel, name="cancel"),
]
