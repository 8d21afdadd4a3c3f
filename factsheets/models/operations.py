"""Signs of life of the processes beside the web."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """When a process last did its round."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
