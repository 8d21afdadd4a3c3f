"""Claude models, through the official SDK; no other module imports it.

Key and address come from the settings alone: a bot's profile can choose a model,
never where the key is sent. Nothing is retried here; the caller decides by
`ProviderError.trouble`.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from functools import lru_cache
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message, TextBlock, Usage
from django.conf import settings

from factsheets.bot import prompt
from factsheets.bot.providers.base import ProviderError, Reply, Request, Trouble

# At DEBUG the SDK logs whole requests, prompt included.
logging.getLogger("anthropic").setLevel(logging.WARNING)

CONNECT_SECONDS = 5.0
#: A service may ask for hours; a worker looks again after this long.
LONGEST_WAIT_SECONDS = 600.0

_TYPE = re.compile(r"[a-z_]{1,64}")
_ACCOUNT = {"authentication_error", "billing_error", "permission_error"}
_TRANSIENT = {"api_error", "overloaded_error", "timeout_error", "conflict_error"}
_ADVICE: dict[Trouble, str] = {
    "account": "The model service will take no call until someone sees to the account behind ANTHROPIC_API_KEY",
    "retry": "The model service could not answer just now; try again in a while",
    "fatal": "The model service refused the request as it stands; look at the bot's profile and at ANTHROPIC_BASE_URL",
}


class AnthropicProvider:
    """Answers with a Claude model."""

    def reply(self, request: Request) -> Reply:
        """One call, one reply; `deadline_seconds` bounds each wait for the service.

        The text is empty only where the service refused (`refused` is True) or
        cut the reply off (`is_truncated`); any other empty reply is an error.
        Raises ProviderError for everything that is not a usable reply.
        """
        outcome = _ask(request)
        # Raised here, not where the SDK's exception is handled: that one holds
        # the key and the prompt, and would travel along as the context.
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome


PROVIDER = AnthropicProvider()

COUNT_SECONDS = 20.0


def count(model: str, text: str) -> int:
    """Tokens of a text as this model reads it in one message, counted by the service.

    Raises ProviderError.
    """
    outcome = _count(model, text)
    if isinstance(outcome, ProviderError):
        raise outcome
    return outcome


def _count(model: str, text: str) -> int | ProviderError:
    client = _usable_client()
    if isinstance(client, ProviderError):
        return client
    try:
        answer: object = client.messages.count_tokens(
            model=model,
            messages=[{"role": "user", "content": text}],
            timeout=anthropic.Timeout(COUNT_SECONDS, connect=CONNECT_SECONDS),
        )
    except (
        anthropic.APIError,
        httpx2.HTTPError,
        json.JSONDecodeError,
        UnicodeDecodeError,
    ) as error:
        return _from_exception(error, sent=text, seconds=COUNT_SECONDS)
    tokens = getattr(answer, "input_tokens", None)
    return (
        tokens if isinstance(tokens, int) else _unusable("broken-reply", "a count without a number")
    )


@lru_cache(maxsize=4)
def _client(_pid: int, key: str, base_url: str) -> anthropic.Anthropic:
    """One client for each process: connections do not survive a fork."""
    return anthropic.Anthropic(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        # A redirect would carry the prompt to another host, a trace to another service.
        http_client=anthropic.DefaultHttpxClient(trust_env=False, follow_redirects=False),
        open_telemetry=False,
    )


def _body(request: Request) -> dict[str, Any]:
    """The request's body; what the profile leaves empty is left out, since models differ in what they take."""
    bot = request.bot
    body: dict[str, Any] = {
        "model": bot.model,
        "max_tokens": bot.max_tokens,
        "messages": [{"role": m.role, "content": m.text} for m in request.messages],
    }
    if system := prompt.as_system(request.prompt):
        body["system"] = system
    if bot.effort:
        body["output_config"] = {"effort": bot.effort}
    if bot.thinking:
        body["thinking"] = {"type": bot.thinking}
    return body


def _key() -> str:
    return str(settings.ANTHROPIC_API_KEY).strip()


def _usable_client() -> anthropic.Anthropic | ProviderError:
    key = _key()
    if not key or not (key.isascii() and key.isprintable()):
        return ProviderError(
            "no-key",
            "There is no usable key for the model service; set ANTHROPIC_API_KEY and start again, "
            "or give the sheet an offline bot.",
            trouble="account",
        )
    return _client(os.getpid(), key, settings.ANTHROPIC_BASE_URL)


def _ask(request: Request) -> Reply | ProviderError:
    client = _usable_client()
    if isinstance(client, ProviderError):
        return client
    seconds = request.deadline_seconds
    try:
        answer: object = client.messages.create(
            **_body(request),
            timeout=anthropic.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
        )
    except (
        anthropic.APIError,
        httpx2.HTTPError,
        json.JSONDecodeError,
        UnicodeDecodeError,
    ) as error:
        sent = " ".join([prompt.as_text(request.prompt), *(m.text for m in request.messages)])
        return _from_exception(error, sent=sent, seconds=seconds)
    return _from_answer(answer)


def _from_exception(error: Exception, *, sent: str, seconds: float) -> ProviderError:
    """What an exception of the SDK or its connection stands for."""
    match error:
        case anthropic.APIStatusError():
            return _from_status(error, key=_key(), sent=" ".join(sent.split()))
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return ProviderError(
                "timeout",
                f"The model service gave no answer within {seconds:g} seconds.",
                trouble="retry",
            )
        case anthropic.APIConnectionError() | httpx2.HTTPError():
            return ProviderError(
                "no-connection",
                "The model service could not be reached; look at the network and at "
                "ANTHROPIC_BASE_URL.",
                trouble="retry",
            )
    return _unusable("broken-reply", "an answer that is not JSON")


def _from_answer(answer: object) -> Reply | ProviderError:
    """The reply in an answer with status 200. The SDK lets through what is missing, so each part is looked at."""
    if not isinstance(answer, Message):
        return _unusable("broken-reply", "a page or a value instead of a message")
    content: object = answer.content
    usage: object = answer.usage
    if not isinstance(content, list) or not isinstance(answer.stop_reason, str):
        return _unusable("broken-reply", "a message without its content or stop reason")
    if not (
        isinstance(usage, Usage)
        and isinstance(usage.input_tokens, int)
        and isinstance(usage.output_tokens, int)
    ):
        return _unusable("broken-reply", "a message without its token counts")
    blocks = [block for block in content if isinstance(block, TextBlock)]
    text = "".join(block.text for block in blocks if isinstance(block.text, str))
    reply = Reply(
        text=text,
        stop_reason=answer.stop_reason,
        refused=True if answer.stop_reason == "refusal" else None,
        usage=usage.model_dump(mode="json", exclude_none=True),
        model=str(answer.model or ""),
        request_id=answer._request_id or "",
    )
    if not text.strip() and not reply.refused and not reply.is_truncated:
        return _unusable("empty-reply", "a reply without text")
    return reply


def _unusable(kind: str, what: str) -> ProviderError:
    return ProviderError(
        kind, f"The model service sent {what}; try again in a while.", trouble="retry"
    )


def _from_status(error: anthropic.APIStatusError, *, key: str, sent: str) -> ProviderError:
    """The error that a status other than 200 stands for, by its type first and its number second."""
    status, named = error.status_code, str(error.type)
    kind = named if error.type and _TYPE.fullmatch(named) else f"http-{status}"
    asked_to_wait = "retry-after" in error.response.headers
    trouble: Trouble = "fatal"
    if kind in _ACCOUNT or status in {401, 402, 403} or "spend_limit" in (error.error_code or ""):
        trouble = "account"
    elif kind == "rate_limit_error" or status == 429:
        # Without a time to wait it is a spending limit, which no wait lifts.
        trouble = "retry" if asked_to_wait else "account"
    elif kind in _TRANSIENT or status in {408, 409} or status >= 500:
        trouble = "retry"
    said = _quotable(error.api_message, key=key, sent=sent)
    return ProviderError(
        kind,
        f"{_ADVICE[trouble]} ({kind}, status {status}){f': {said}' if said else '.'}",
        trouble=trouble,
        retry_after=_wait(error.response.headers.get("retry-after", ""))
        if trouble == "retry"
        else None,
    )


def _wait(header: str) -> float | None:
    try:
        seconds = float(header)
    except ValueError:
        return None
    return min(seconds, LONGEST_WAIT_SECONDS) if math.isfinite(seconds) and seconds >= 0 else None


def _quotable(message: object, *, key: str, sent: str) -> str:
    """The service's own words, cut short; nothing where they repeat the key or a stretch of what was sent."""
    whole = " ".join(message.split()) if isinstance(message, str) else ""
    said = whole[:200]
    stretches = (said[start : start + 20] for start in range(len(said) - 19))
    if key in whole or any(stretch in sent for stretch in stretches):
        return ""
    return said
