"""Settings for tests: the product's own, with a key of their own and data set apart."""

import os

os.environ["READ_DOT_ENV"] = "no"
os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "x" * 40)
os.environ.setdefault("LOG_LEVEL", "WARNING")

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Whether or not somebody ran `collectstatic` here.
WHITENOISE_USE_FINDERS = True
STORAGES["staticfiles"] = {  # noqa: F405
    "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
}
ANTHROPIC_API_KEY = ""
# Tests never reach a network: a call that forgot its stand-in fails at once.
ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
