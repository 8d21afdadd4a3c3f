"""The services a bot may run on, by the name its profile bears."""

from __future__ import annotations

from importlib import import_module

from factsheets.bot.providers.base import Provider, ProviderError
from factsheets.snapshot import BotSnapshot

#: Loaded on first use: the SDK of a model service costs seconds and megabytes
#: that a process answering only from the sheet should not pay.
_MODULES = {
    "offline": "factsheets.bot.providers.offline",
    "anthropic": "factsheets.bot.providers.anthropic",
}


def for_bot(bot: BotSnapshot) -> Provider:
    """The provider that a bot's profile names. Raises ProviderError for one that is not installed."""
    try:
        module = import_module(_MODULES[bot.provider])
    except KeyError:
        known = ", ".join(sorted(_MODULES))
        raise ProviderError(
            "unknown-provider",
            f"This installation has no provider named {bot.provider!r}; choose one of: {known}.",
            trouble="fatal",
        ) from None
    provider: Provider = module.PROVIDER
    return provider
