"""Logs: one line an event, with the id of the request or task; never keys, prompts or persons.

Every logger of the process, ours or a library's, goes through the same steps.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware

#: Members of a line that are dropped whoever wrote them, as they are named in lower case.
SECRET = frozenset(
    {
        "api_key",
        "authorization",
        "cookie",
        "credentials",
        "email",
        "ip",
        "ip_address",
        "key",
        "password",
        "prompt",
        "reply",
        "secret",
        "token",
        "user_agent",
        "username",
    }
)


_access = logging.getLogger(__name__)
log = structlog.stdlib.get_logger(__name__)

#: Loggers of libraries whose finer lines hold requests to a model and replies.
_TELLING = ("anthropic", "httpx", "httpx2", "httpcore", "httpcore2")

#: What a client may call its request: a short token that can do no harm in a log.
_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,63}")


class WithoutClients(logging.Filter):
    """The web server names who sent it nonsense, and quotes that; the line does without."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith("Invalid request from"):
            record.msg, record.args = "a client sent what is no HTTP request", None
        return True


def without_secrets(_logger: Any, _name: str, event: dict[str, Any]) -> dict[str, Any]:
    """Drop what must never stand in a log, by its name."""
    return {name: value for name, value in event.items() if name.lower() not in SECRET}


_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    without_secrets,
]


def configured(*, level: str, form: str) -> dict[str, Any]:
    """LOGGING for Django: `form` is `line` for people or `json` for machines."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *_SHARED,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    _renderer(form),
                ],
                "foreign_pre_chain": [*_SHARED, structlog.processors.format_exc_info],
            }
        },
        "filters": {"without_clients": {"()": WithoutClients}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Our own line of a request that failed has the traceback, and its id.
            "django.request": {"level": "CRITICAL"},
            # These name accounts and addresses; `factsheets.log_ins` says what an operator needs.
            "axes": {"level": "CRITICAL"},
            # The web server's lines in the form of all others.
            "gunicorn.error": {
                "handlers": [],
                "propagate": True,
                "level": level,
                "filters": ["without_clients"],
            },
            **{name: {"level": "WARNING"} for name in _TELLING},
        },
    }


def _renderer(form: str) -> Any:
    if form == "json":
        return structlog.processors.JSONRenderer()
    return structlog.processors.LogfmtRenderer(
        key_order=["timestamp", "level", "logger", "event"], drop_missing=True
    )


class RequestLog(RequestMiddleware):
    """One line a request, with its id, which the answer bears too and tasks carry on.

    Query strings are left out, for people search for persons and claims, and so
    is the part of an address that is a secret.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.monotonic()
        request_id = _id_of(request)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response: HttpResponse = self.get_response(request)  # type: ignore[assignment]
        response["X-Request-ID"] = request_id
        # One that failed has said so already, with its traceback.
        if not hasattr(request, "_raised_exception"):
            self._say(request, response, began)
        structlog.contextvars.clear_contextvars()
        return response

    def _say(self, request: HttpRequest, response: HttpResponse, began: float) -> None:
        # A visitor's mistake is no fault of the installation.
        level = logging.WARNING if response.status_code >= 500 else logging.INFO
        # Asked first: the polled address should pay for no line that nobody reads.
        if _access.isEnabledFor(level):
            self.bind_user_id(request)
            log.log(
                level,
                "request_finished",
                request=self.format_request(request),
                code=response.status_code,
                ms=round((time.monotonic() - began) * 1000, 1),
            )

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        path = request.path
        if path.startswith("/admin/password-reset/"):
            path = "/admin/password-reset/"
        return f"{request.method} {path}"

    @staticmethod
    def bind_user_id(request: HttpRequest) -> None:
        """The number of who has logged in, where the page looked at all: no look of our own."""
        session = getattr(request, "session", None)
        if session is not None and session.accessed and request.user.is_authenticated:
            structlog.contextvars.bind_contextvars(user_id=request.user.pk)


def _id_of(request: HttpRequest) -> str:
    """The id that the client gave, if it is harmless; else one of ours."""
    said: str = request.META.get("HTTP_X_REQUEST_ID", "")
    return said if _HARMLESS.fullmatch(said) else str(uuid.uuid4())


#: What the tasks' steps write.
LEVELS: dict[str, Any] = {
    "DJANGO_STRUCTLOG_CELERY_ENABLED": True,
    "DJANGO_STRUCTLOG_IP_LOGGING_ENABLED": False,
    "DJANGO_STRUCTLOG_CELERY_DEFAULT_LOG_LEVEL": logging.DEBUG,
}
