"""A forgotten password set anew by mail: Django's own pages, in the admin's frame."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import views
from django.urls import path
from django.views.generic.base import ContextMixin


class InFrame(ContextMixin):
    """What the admin's pages before the log-in need."""

    template_name = "password_reset.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        frame = admin.site.each_context(self.request)  # type: ignore[attr-defined]
        return {**frame, **context, "sentence": getattr(self, "sentence", "")}


class Ask(InFrame, views.PasswordResetView):
    title = "Set a new password"
    sentence = "Write the mail address of your account; a link to set a new password is sent there."
    template_name = "password_reset.html"


class Sent(InFrame, views.PasswordResetDoneView):
    title = "Look into your mail"
    # The same for an address that nobody has here: it is no way to find out who has.
    sentence = "If an account has that address, a link is on its way. It works for three days."
    template_name = "password_reset.html"


class Choose(InFrame, views.PasswordResetConfirmView):
    title = "Choose a new password"
    template_name = "password_reset.html"


class Done(InFrame, views.PasswordResetCompleteView):
    title = "The new password is set"
    sentence = "Log in with it now."
    template_name = "password_reset.html"


# Names that Django's admin looks for; the log-in page then offers the first.
urlpatterns = [
    path("", Ask.as_view(), name="admin_password_reset"),
    path("sent/", Sent.as_view(), name="password_reset_done"),
    path("<uidb64>/<token>/", Choose.as_view(), name="password_reset_confirm"),
    path("done/", Done.as_view(), name="password_reset_complete"),
]
