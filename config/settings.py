"""Settings, read from the environment alone; nonsense fails at start with the variable's name.

Every variable stands in `.env.example`. With no DATABASE_URL the data is SQLite
under `var/`; with no REDIS_URL the broker is the embedded one on a unix socket.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zoneinfo
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from config import logs, navigation

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()


def flag(name: str, *, default: bool = False) -> bool:
    """A yes or no. Anything but the usual words for either is refused, never taken for a no."""
    value = env.str(name, default="").strip().lower()
    if value in {"", "1", "true", "yes", "on", "0", "false", "no", "off"}:
        return value in {"1", "true", "yes", "on"} if value else default
    raise ImproperlyConfigured(f"{name} must be yes or no (true, false, 1, 0); it is {value!r}.")


if flag("READ_DOT_ENV", default=True) and (BASE_DIR / ".env").is_file():
    env.read_env(BASE_DIR / ".env")


def secret_key() -> str:
    value: str = env.str("SECRET_KEY", default="")
    if len(value) < 32:
        raise ImproperlyConfigured(
            "SECRET_KEY must be set to at least 32 random characters; `make demo` and `make test` "
            "make their own, a server gets one from its operator."
        )
    return value


def time_zone(name: str, default: str) -> str:
    value: str = env.str(name, default=default)
    if value not in zoneinfo.available_timezones():
        raise ImproperlyConfigured(
            f"{name} must name a time zone such as Europe/London, not {value!r}."
        )
    return value


def http_url(name: str, default: str) -> str:
    value: str = env.str(name, default="") or default
    try:
        parts = urlsplit(value)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address:
        # Not quoted: an address may hold a password.
        raise ImproperlyConfigured(
            f"{name} must be an http or https address, such as https://api.example.org."
        )
    return value


def seconds(name: str, default: float) -> float:
    text: str = env.str(name, default="")
    try:
        value = float(text or default)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:
        raise ImproperlyConfigured(
            f"{name} must be a number of seconds above 0 and up to 3600, not {text!r}."
        )
    return value


def log_level(name: str) -> str:
    value: str = env.str(name, default="") or "INFO"
    if value not in {"DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}:
        raise ImproperlyConfigured(
            f"{name} must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not {value!r}."
        )
    return value


def mail() -> dict[str, Any]:
    """How mail is sent; without EMAIL_URL it is printed and not sent."""
    text: str = env.str("EMAIL_URL", default="") or "consolemail://"
    try:
        found: dict[str, Any] = env.email_url_config(text)
    except (environ.ImproperlyConfigured, ValueError, KeyError) as error:
        # Not quoted: the address may hold a password.
        raise ImproperlyConfigured(
            "EMAIL_URL must be an address such as smtp+tls://user:password@mail.example.org:587."
        ) from error
    options: dict[str, Any] = found.pop("OPTIONS", {})
    return {**found, **options}


def token(name: str) -> str:
    value: str = env.str(name, default="")
    if value and len(value) < 20:
        # Not quoted: it is a secret.
        raise ImproperlyConfigured(f"{name} must have at least 20 random characters.")
    return value


def log_format(name: str) -> str:
    value: str = env.str(name, default="") or "line"
    if value not in {"line", "json"}:
        raise ImproperlyConfigured(f"{name} must be line or json, not {value!r}.")
    return value


# A test or a second instance may keep its data elsewhere.
VAR_DIR = Path(env.str("MUNIMENT_VAR", default=str(BASE_DIR / "var"))).resolve()

SECRET_KEY = secret_key()
DEBUG = flag("DEBUG")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    # unfold and its history templates stand before the apps whose pages they dress.
    "unfold",
    "unfold.contrib.simple_history",
    "simple_history",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "axes",
    "django_structlog",
    "factsheets",
    "evals",
]

MIDDLEWARE = [
    "config.logs.RequestLog",
    "django.middleware.security.SecurityMiddleware",
    "config.security.BrowserPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Last: it answers in place of a log-in that is closed.
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]


def databases() -> dict[str, dict[str, Any]]:
    try:
        database: dict[str, Any] = env.db_url_config(
            env.str("DATABASE_URL", default="") or f"sqlite:///{VAR_DIR / 'muniment.sqlite3'}"
        )
    except (environ.ImproperlyConfigured, ValueError, KeyError) as error:
        # Not quoted: the address may hold a password.
        raise ImproperlyConfigured(
            "DATABASE_URL must be an address such as postgres://user:password@host:5432/name; "
            "write the signs / : # ? @ in a password as %2F %3A %23 %3F %40."
        ) from error
    if "sqlite" in database.get("ENGINE", ""):
        # Readers never wait for a writer (WAL), a writer takes its lock at the start
        # instead of failing half way (IMMEDIATE), and waits its turn (timeout, seconds).
        database["OPTIONS"] = {
            **database.get("OPTIONS", {}),
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
            # Replacing a row is a delete too, and must meet the triggers.
            "PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=ON;",
        }
    elif "postgresql" not in database.get("ENGINE", ""):
        raise ImproperlyConfigured("DATABASE_URL must begin with sqlite:// or postgres://.")
    if database["NAME"] in {"", ":memory:"}:
        raise ImproperlyConfigured(
            "DATABASE_URL must name a database: each process would have one of its own."
        )
    database["CONN_MAX_AGE"] = 60
    database["CONN_HEALTH_CHECKS"] = True
    return {"default": database}


DATABASES = databases()
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    # First: a log-in that is closed is not even tried.
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    # Roles on single sheets.
    "factsheets.access.SheetRoles",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en-gb"
USE_TZ = True
#: Instants are stored in UTC; a date, here and in every rule, is a day in this zone.
ORG_TIME_ZONE = time_zone("ORG_TIME_ZONE", "Europe/London")
TIME_ZONE = ORG_TIME_ZONE

STATIC_URL = "static/"
# Where `collectstatic` puts them.
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "static"))).resolve()
STATICFILES_DIRS = [BASE_DIR / "assets"]
# Without `collectstatic` (demo, tests) files come straight from the apps.
WHITENOISE_USE_FINDERS = DEBUG or not STATIC_ROOT.is_dir()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if (STATIC_ROOT.is_dir() and not DEBUG) or "collectstatic" in sys.argv
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# ---- security ----
HTTPS_ONLY = flag("HTTPS_ONLY")
SECURE_SSL_REDIRECT = HTTPS_ONLY
# Asked by the machine itself, past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS_ONLY else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS_ONLY
SECURE_HSTS_PRELOAD = HTTPS_ONLY
BEHIND_PROXY = flag("BEHIND_PROXY")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
SESSION_COOKIE_SECURE = HTTPS_ONLY
CSRF_COOKIE_SECURE = HTTPS_ONLY
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# ---- log-ins that fail: five of one name from one address close it for a while ----
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "config.security.client_address"
AXES_LOCKOUT_CALLABLE = "factsheets.views.locked_out"
# Names and addresses are kept no longer than they are needed, and shown nowhere.
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# ---- mail ----
EMAIL = mail()
MAIL_IS_SENT = EMAIL["EMAIL_BACKEND"] == "django.core.mail.backends.smtp.EmailBackend"
globals().update(EMAIL)
EMAIL_TIMEOUT = 10
#: Where people open the product, for links in mail; without it a mail gives the path alone.
SITE_URL = (http_url("SITE_URL", "") if env.str("SITE_URL", default="") else "").rstrip("/")
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("MAIL_FROM", default="") or "muniment@localhost"

#: Who may read /metrics; without it there is no such page.
METRICS_TOKEN = token("METRICS_TOKEN")

# ---- history ----
SIMPLE_HISTORY_HISTORY_CHANGE_REASON_USE_TEXT_FIELD = True
SIMPLE_HISTORY_DATE_INDEX = "composite"
SIMPLE_HISTORY_REVERT_DISABLED = True

# ---- the product's own ----
FACTSHEETS_EVIDENCE = "evals.evidence.for_subject"
#: Seconds that one call to a model may take.
MODEL_CALL_SECONDS = seconds("MODEL_CALL_SECONDS", 60)
ANTHROPIC_API_KEY = env.str("ANTHROPIC_API_KEY", default="")
ANTHROPIC_BASE_URL = http_url("ANTHROPIC_BASE_URL", "https://api.anthropic.com")

# ---- API ----
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    # Public bytes are the same for everyone: no cookie and no log-in is looked at.
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "UNAUTHENTICATED_USER": None,
    # No `?format=`: which form is answered is for the Accept header to say.
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "factsheets.api.errors.problem",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Muniment delivery API",
    "DESCRIPTION": "Published fact sheets for bots, byte for byte the same for everyone, and what use they were.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "APPEND_COMPONENTS": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
}


# ---- broker and workers ----
def broker_socket() -> Path:
    """Below VAR_DIR, or, where that path is longer than a socket's may be, in a folder of its own."""
    path = VAR_DIR / "broker" / "broker.sock"
    if len(str(path).encode()) < 100:
        return path
    name = hashlib.sha256(str(VAR_DIR).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"muniment-{os.getuid()}-{name}" / "broker.sock"


BROKER_SOCKET = broker_socket()


def broker_url() -> str:
    value: str = env.str("REDIS_URL", default="")
    if not value:
        return f"redis+socket://{BROKER_SOCKET}"
    if urlsplit(value).scheme not in {"redis", "rediss", "redis+socket"}:
        raise ImproperlyConfigured(
            "REDIS_URL must begin with redis://, rediss:// or redis+socket://."
        )
    return value


CELERY_BROKER_URL = broker_url()
USES_EMBEDDED_BROKER = (
    CELERY_BROKER_URL.startswith("redis+socket:") and str(BROKER_SOCKET) in CELERY_BROKER_URL
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# The visibility timeout only has to outlast a task: a second delivery finds the
# attempt claimed and does nothing.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 3,
    # A web request must hear soon that the broker is away; the tick sends again.
    "max_retries": 1,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "muniment"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 30
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Celery closes the connection around every task unless told otherwise; tasks
# begin by dropping one that has died.
CELERY_DB_REUSE_MAX = 1_000_000_000
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "beat-schedule")
CELERY_TIMEZONE = "UTC"
#: How often beat has open runs looked after, and shows that it lives.
TICK_SECONDS = seconds("TICK_SECONDS", 20)
CELERY_BEAT_SCHEDULE = {
    "probe runs: backstop": {"task": "evals.tasks.tick", "schedule": TICK_SECONDS},
    "scheduled publications": {
        "task": "factsheets.tasks.publish_due",
        "schedule": TICK_SECONDS,
    },
    "notices: mail": {"task": "factsheets.tasks.send_notices", "schedule": TICK_SECONDS},
    "evidence of what is live: renew": {
        "task": "evals.tasks.renew_evidence",
        "schedule": 3600.0,
    },
    "sizes: count again each quarter": {
        "task": "factsheets.tasks.count_again",
        "schedule": 86_400.0,
    },
    "retrieval on what is live: measure": {
        "task": "evals.tasks.measure_published",
        "schedule": 3600.0,
    },
    "failed log-ins: forget": {
        "task": "factsheets.tasks.forget_failed_log_ins",
        "schedule": 3600.0,
    },
}

# ---- logs: what an operator needs, never keys, prompts or personal data ----
LOGGING = logs.configured(level=log_level("LOG_LEVEL"), form=log_format("LOG_FORMAT"))
globals().update(logs.LEVELS)

UNFOLD = {
    "SITE_TITLE": "Muniment",
    "SITE_HEADER": "Muniment",
    "SITE_SUBHEADER": "Sourced fact sheets",
    "SITE_SYMBOL": "history_edu",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {"show_search": True, "navigation": navigation.groups()},
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("muniment/favicon.svg"),
        }
    ],
    "STYLES": [lambda request: static("muniment/pages.css")],
}
