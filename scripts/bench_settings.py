"""The product's settings with one address more: a bare view to measure against."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "scripts.bench_urls"
