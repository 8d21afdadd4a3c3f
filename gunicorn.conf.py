"""What gunicorn reads by itself: its lines have the form of all others.

The settings are read here, before any worker starts, so that nonsense in the
environment is one sentence and not the end of one worker after the other.
"""

import sys

from django.core.exceptions import ImproperlyConfigured

# The folder that gunicorn was started in, as `manage.py` has it.
sys.path.insert(0, ".")

try:
    from config import settings
except ImproperlyConfigured as error:
    sys.exit(f"error: {error}")

logconfig_dict = settings.LOGGING
