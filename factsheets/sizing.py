"""Does the sheet still fit the prompt? Counting without a tokeniser errs on the safe side."""

from __future__ import annotations

from math import ceil

from factsheets.snapshot import BotSnapshot

#: Characters to a token at the upper end of what current models make of English
#: prose (observed 2.83 to 3.33): a size must not be under-stated.
CHARACTERS_PER_TOKEN = 2.8


def estimated_tokens(text: str) -> int:
    """Tokens of a text, an upper estimate (about ±15 % around the middle)."""
    return ceil(len(text) / CHARACTERS_PER_TOKEN)


def usable_window(bot: BotSnapshot) -> int:
    """Tokens left for rules and sheet once every reserve is taken from the context window."""
    reserves = (
        bot.reserve_history + bot.reserve_question + bot.reserve_retrieval + bot.reserve_output
    )
    return bot.context_window - reserves
