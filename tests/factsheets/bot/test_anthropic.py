"""The Anthropic provider: the real SDK against the stand-in server."""

from __future__ import annotations

import logging
import multiprocessing
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_type_hints

import pytest
from anthropic.types import ErrorResponse
from anthropic.types import Message as ApiMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from pydantic import BaseModel, TypeAdapter

from factsheets.bot import providers
from factsheets.bot.prompt import Prompt
from factsheets.bot.providers import anthropic
from factsheets.bot.providers.base import Message, ProviderError, Reply, Request
from factsheets.snapshot import BotSheet, BotSnapshot
from tests import model_api
from tests.model_api import ModelApi, Step

BOT = BotSnapshot(
    slug="guide",
    provider="anthropic",
    model="claude-haiku-5-5",
    effort="",
    thinking="",
    max_tokens=1024,
    endpoint="",
    context_window=200_000,
    reserve_history=0,
    reserve_question=0,
    reserve_retrieval=0,
    reserve_output=0,
)
RULES = "Never say what the lighthouse keeper is paid, whoever asks for it."
REQUEST = Request(
    bot=BOT,
    prompt=Prompt(rules=RULES, sheet="# Lighthouse\n\n## Hours\n\nOpen from nine."),
    sheet=BotSheet(language="en", title="Lighthouse", sections=()),
    messages=(
        Message("user", "Hello"),
        Message("assistant", "Good morning."),
        Message("user", "When does it open?"),
    ),
    question="When does it open?",
    deadline_seconds=5.0,
)


@pytest.fixture(scope="module")
def server() -> Iterator[ModelApi]:
    with ModelApi() as server:
        yield server


@pytest.fixture
def api(server: ModelApi, settings: Any) -> Iterator[ModelApi]:
    settings.ANTHROPIC_API_KEY = server.key
    settings.ANTHROPIC_BASE_URL = server.url
    yield server
    server.finish()


def ask(request: Request = REQUEST) -> Reply:
    return anthropic.PROVIDER.reply(request)


def error_of(request: Request = REQUEST) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(request)
    return caught.value


# ---- what is sent ----


def test_a_profile_that_names_anthropic_gets_this_provider():
    assert providers.for_bot(BOT) is anthropic.PROVIDER


def test_the_rules_the_sheet_and_the_conversation_are_sent_and_nothing_else(api):
    ask()

    assert api.calls[0].body == {
        "model": "claude-haiku-5-5",
        "max_tokens": 1024,
        "system": [
            {"type": "text", "text": RULES},
            {
                "type": "text",
                "text": "# Lighthouse\n\n## Hours\n\nOpen from nine.",
                "cache_control": {"type": "ephemeral"},
            },
        ],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Good morning."},
            {"role": "user", "content": "When does it open?"},
        ],
    }


def test_effort_and_thinking_are_sent_where_the_profile_sets_them(api):
    ask(replace(REQUEST, bot=replace(BOT, effort="low", thinking="adaptive")))

    assert api.calls[0].body["output_config"] == {"effort": "low"}
    assert api.calls[0].body["thinking"] == {"type": "adaptive"}


def test_an_empty_prompt_sends_no_system_at_all(api):
    ask(replace(REQUEST, prompt=Prompt(rules="", sheet="")))

    assert "system" not in api.calls[0].body


def test_the_key_and_the_question_never_go_to_an_address_from_the_profile(api):
    with ModelApi() as elsewhere:
        ask(replace(REQUEST, bot=replace(BOT, endpoint=elsewhere.url)))

        assert (len(api.calls), len(elsewhere.calls)) == (1, 0)


def test_a_redirect_is_not_followed(api):
    with ModelApi() as elsewhere:
        api.script(Step(status=307, raw=b"", headers={"location": f"{elsewhere.url}/v1/messages"}))

        error = error_of()

        assert (error.kind, error.trouble, elsewhere.calls) == ("http-307", "fatal", [])


def test_a_proxy_in_the_environment_is_not_used(api, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")

    assert ask().text == "A reply from the stand-in."


def test_changed_settings_hold_from_the_next_call(api, settings):
    ask()
    settings.ANTHROPIC_API_KEY = "another-key"

    assert error_of().kind == "authentication_error"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_process_forked_after_a_call_can_call_too(api):
    ask()
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)

    child = fork.Process(target=lambda: sender.send(ask().text), daemon=True)
    child.start()

    assert receiver.poll(10)
    assert receiver.recv() == "A reply from the stand-in."
    child.join(10)


# ---- what comes back ----


def test_a_reply_carries_text_stop_reason_model_request_id_and_raw_counters(api):
    api.script(Step(text="At nine.", usage={"input_tokens": 12, "output_tokens": 3}))

    reply = ask()

    assert reply == Reply(
        text="At nine.",
        stop_reason="end_turn",
        refused=None,
        usage={"input_tokens": 12, "output_tokens": 3},
        model="claude-haiku-5-5",
        request_id="req_000001",
    )


def test_text_is_joined_from_text_blocks_alone(api):
    api.script(
        Step(
            content=[
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "At "},
                {"type": "text", "text": "nine."},
            ]
        )
    )

    assert ask().text == "At nine."


def test_a_bot_that_obeys_its_rules_can_be_played_by_a_responder(api):
    api.responder = lambda body: f"{len(body['system'])} blocks, {body['messages'][-1]['content']}"

    assert ask().text == "2 blocks, When does it open?"


def test_a_refusal_of_the_service_is_a_reply_that_says_so(api):
    api.script(Step(stop_reason="refusal", text="I can't help with that."))

    reply = ask()

    assert (reply.refused, reply.text) == (True, "I can't help with that.")


def test_a_refusal_without_text_is_a_reply_with_empty_text(api):
    api.script(Step(stop_reason="refusal", content=[]))

    reply = ask()

    assert (reply.refused, reply.text) == (True, "")


@pytest.mark.parametrize("stop_reason", ["max_tokens", "model_context_window_exceeded"])
@pytest.mark.parametrize("text", ["It opens at", ""])
def test_a_reply_that_was_cut_off_says_so_even_without_text(api, stop_reason, text):
    api.script(Step(stop_reason=stop_reason, text=text))

    reply = ask()

    assert (reply.is_truncated, reply.refused, reply.text) == (True, None, text)


# ---- what goes wrong ----


@pytest.mark.parametrize(
    ("status", "kind", "trouble"),
    [
        (400, "invalid_request_error", "fatal"),
        (401, "authentication_error", "account"),
        (402, "billing_error", "account"),
        (403, "permission_error", "account"),
        (404, "not_found_error", "fatal"),
        (408, "timeout_error", "retry"),
        (409, "conflict_error", "retry"),
        (413, "request_too_large", "fatal"),
        (422, "invalid_request_error", "fatal"),
        (429, "rate_limit_error", "account"),
        (500, "api_error", "retry"),
        (502, "api_error", "retry"),
        (503, "api_error", "retry"),
        (504, "timeout_error", "retry"),
        (529, "overloaded_error", "retry"),
    ],
)
def test_each_error_of_the_service_has_its_kind_and_its_trouble(api, status, kind, trouble):
    api.script(Step(status=status, type=kind))

    error = error_of()

    assert (error.kind, error.trouble, error.retry_after) == (kind, trouble, None)
    assert len(api.calls) == 1


def test_the_type_speaks_louder_than_the_status(api):
    api.script(Step(status=400, type="billing_error"), Step(status=400, type="overloaded_error"))

    assert [error_of().trouble, error_of().trouble] == ["account", "retry"]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("86400", 600.0), ("-3", None), ("nan", None), ("tomorrow", None)],
)
def test_a_rate_limit_with_a_time_to_wait_is_retried_after_it_within_a_cap(api, header, seconds):
    api.script(Step(status=429, type="rate_limit_error", headers={"retry-after": header}))

    error = error_of()

    assert (error.trouble, error.retry_after) == ("retry", seconds)


def test_a_spending_limit_is_a_matter_of_the_account_even_with_a_time_to_wait(api):
    api.script(
        Step(
            status=429,
            type="rate_limit_error",
            details={"error_code": "contract_spend_limit_reached"},
            headers={"retry-after": "5"},
        )
    )

    error = error_of()

    assert (error.trouble, error.retry_after) == ("account", None)


def test_an_error_page_that_is_not_json_is_known_by_its_status(api):
    api.script(Step(status=502, raw=b"<html>Bad gateway</html>", content_type="text/html"))

    error = error_of()

    assert (error.kind, error.trouble) == ("http-502", "retry")


def test_no_answer_in_time_is_a_timeout(api):
    api.script(Step(delay=5))

    error = error_of(replace(REQUEST, deadline_seconds=0.1))

    assert (error.kind, error.trouble) == ("timeout", "retry")


def test_a_dropped_connection_is_no_connection(api):
    api.script(Step(drop=True))

    error = error_of()

    assert (error.kind, error.trouble) == ("no-connection", "retry")


def test_a_port_where_nobody_listens_is_no_connection(settings):
    settings.ANTHROPIC_API_KEY = "a-key"
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"

    assert error_of().kind == "no-connection"


@pytest.mark.parametrize("key", ["", "  ", "k\u00e9y", "a\nb"])
def test_without_a_usable_key_nothing_is_sent_and_the_sentence_says_what_to_do(api, settings, key):
    settings.ANTHROPIC_API_KEY = key

    error = error_of()

    assert (error.kind, error.trouble, api.calls) == ("no-key", "account", [])
    assert "set ANTHROPIC_API_KEY" in error.sentence


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(Step(raw=b"<html></html>", content_type="text/html"), id="a page"),
        pytest.param(Step(raw=b'{"id": '), id="broken JSON"),
        pytest.param(Step(raw=b"\xff\xfe"), id="not text"),
        pytest.param(Step(raw=b"[]"), id="a list"),
        pytest.param(Step(raw=b"null"), id="null"),
        pytest.param(Step(raw=b"{}"), id="an empty object"),
        pytest.param(Step(stop_reason=None), id="no stop reason"),
        pytest.param(Step(without=("content",)), id="no content"),
        pytest.param(Step(without=("usage",)), id="no usage"),
        pytest.param(Step(usage={}), id="empty usage"),
    ],
)
def test_a_broken_answer_is_an_error_to_retry(api, step):
    api.script(step)

    error = error_of()

    assert (error.kind, error.trouble) == ("broken-reply", "retry")


@pytest.mark.parametrize(
    "content",
    [
        [],
        [{"type": "text", "text": " \n"}],
        [{"type": "text"}],
        [{"type": "text", "text": 5}],
        [None],
        [3],
    ],
)
def test_an_answer_without_text_is_an_error_never_an_empty_reply(api, content):
    api.script(Step(content=content))

    error = error_of()

    assert (error.kind, error.trouble) == ("empty-reply", "retry")


# ---- what must not get out ----


def test_the_words_of_the_service_are_quoted_where_they_repeat_nothing_that_was_sent(api):
    api.script(Step(status=404, type="not_found_error", message="model: claude-nobody"))

    assert "model: claude-nobody" in error_of().sentence


@pytest.mark.parametrize(
    "said", [f"cannot read: {RULES}", f"bad key {model_api.KEY}", "x" * 190 + model_api.KEY]
)
def test_words_of_the_service_that_repeat_the_key_or_the_prompt_are_left_out(api, said):
    api.script(Step(status=400, type="invalid_request_error", message=said))

    assert said[:15] not in str(error_of())


def test_an_error_type_that_is_no_plain_word_is_not_kept(api):
    api.script(Step(status=400, type=model_api.KEY))

    assert error_of().kind == "http-400"


@pytest.mark.parametrize("step", [Step(status=500), Step(drop=True), Step(raw=b"{")])
def test_an_error_brings_no_exception_that_holds_the_request(api, step):
    api.script(step)

    error = error_of()

    assert (error.__cause__, error.__context__) == (None, None)
    assert model_api.KEY not in "".join(traceback.format_exception(error))


def test_neither_key_nor_prompt_nor_question_is_logged_even_at_debug(api, caplog):
    caplog.set_level(logging.DEBUG)
    # The settings keep these quieter; here they may say all that they would.
    for library in ("httpx", "httpx2", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=library)
    api.script(Step(), Step(status=500), Step(drop=True))

    ask()
    error_of()
    error_of()

    assert caplog.text
    assert not [s for s in (model_api.KEY, RULES, "When does it open?") if s in caplog.text]


# ---- the stand-in tells the truth ----


def extras(value: object) -> list[object]:
    """What the SDK's models took in beyond their fields, at every level: a misspelt field lands here."""
    inner = [getattr(value, name) for name in type(value).model_fields]
    models = [v for item in inner for v in (item if isinstance(item, list) else [item])]
    found = [extra for model in models if isinstance(model, BaseModel) for extra in extras(model)]
    return [*(value.model_extra or {}), *found]


@pytest.mark.parametrize(
    "step",
    [Step(), Step(stop_reason="max_tokens"), Step(stop_reason="refusal", content=[])],
)
def test_the_stand_ins_messages_are_messages_of_the_api_to_the_last_field(step):
    body = {
        "model": "claude-haiku-5-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Hi"}],
    }

    answer = TypeAdapter(ApiMessage).validate_python(model_api.message(body, step, "Hello", 1))

    assert extras(answer) == []


def test_the_stand_ins_errors_are_errors_of_the_api_to_the_last_field():
    body = model_api.failure("overloaded_error", "Overloaded", "req_1")

    answer = TypeAdapter(ErrorResponse).validate_python(body)

    assert extras(answer) == []


def test_the_stand_in_takes_exactly_the_body_keys_of_the_sdk():
    sent_as_headers = {"workspace_id", "user_profile_id"}

    assert set(get_type_hints(MessageCreateParamsNonStreaming)) == (
        model_api.BODY_KEYS | sent_as_headers
    )


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0},
        {"max_tokens": None},
        {"messages": []},
        {"messages": [{"role": "assistant", "content": "Hi"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"system": [{"type": "text", "text": ""}]},
        {"output_config": {"effort": "enormous"}},
        {"thinking": {"type": "sometimes"}},
        {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5},
    ],
)
def test_the_stand_in_refuses_what_the_api_would_refuse(change):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}

    assert model_api.fault(body) is None
    assert model_api.fault(body | change)


def test_a_step_that_was_never_called_for_fails_the_test():
    api = ModelApi()

    with pytest.raises(AssertionError, match="1 scripted step"), api:
        api.script(Step())
