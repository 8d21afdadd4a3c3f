"""What the routes that take something share."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.views import APIView

from factsheets.api.errors import UnknownParameter


class TakingView(APIView):
    """Takes JSON by POST. No cookie, no log-in; no query parameter is known."""

    http_method_names = ["post", "options"]
    #: Says of itself that it is no route for reading.
    writes = True

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """No page of another origin may send: a key has no place in a browser."""
        return HttpResponse(
            status=HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(self.allowed_methods)}
        )

    def without_parameters(self, request: Request) -> None:
        """Raise UnknownParameter for an address with a query."""
        if request.query_params:
            names = ", ".join(sorted(request.query_params))
            raise UnknownParameter(f"This address takes no parameter {names}; leave it out.")
