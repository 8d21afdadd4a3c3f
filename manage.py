#!/usr/bin/env python
"""The door to every command."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A setting that cannot be read: one sentence, with the variable's name.
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
