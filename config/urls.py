"""Every address of the product."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from evals.views import new_sheet
from factsheets.api.views import current
from factsheets.views import healthz, metrics

urlpatterns = [
    # The address that every bot polls, also among the API's own: found here it is found at once.
    path("api/v1/sheets/<slug:slug>/", current),
    path("api/v1/", include("factsheets.api.urls")),
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/runs/", include("evals.urls")),
    path("admin/new-sheet/", new_sheet, name="new_sheet"),
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
]
if settings.MAIL_IS_SENT:
    urlpatterns.insert(0, path("admin/password-reset/", include("factsheets.password_reset")))

handler400 = "factsheets.api.errors.bad_request"
handler404 = "factsheets.api.errors.page_not_found"
handler500 = "factsheets.api.errors.server_error"
