"""Tests of what bots do with a sheet."""
