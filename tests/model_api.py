"""A stand-in for the model API: the same wire form, on loopback, following a script.

    with ModelApi() as api:
        api.script(Step(status=529, type="overloaded_error"), Step(text="At nine."))

Calls take the steps in order; with none left the responder makes the reply's
text from the request's body, so a test can play a bot that obeys its rules.
Leaving the block with steps unused is an error: the test asked too little.
"""

from __future__ import annotations

import json
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Body = dict[str, Any]
Responder = Callable[[Body], str]

KEY = "stand-in-key"
REQUIRED = ("model", "max_tokens", "messages")
#: Compared with the SDK's own type by a test.
BODY_KEYS = {
    *REQUIRED,
    *("system", "output_config", "thinking", "metadata", "stop_sequences", "tools", "tool_choice"),
    *(
        "cache_control",
        "container",
        "diagnostics",
        "inference_geo",
        "service_tier",
        "speed",
        "stream",
    ),
}
EFFORTS = {"low", "medium", "high", "xhigh", "max"}
THINKING = {"adaptive", "between_tools", "disabled", "enabled"}


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happens to one call. `raw` is sent as it is; `drop` hangs up without an answer."""

    status: int = 200
    type: str = "api_error"
    message: str = "Scripted by the test."
    details: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    content: list[Body] | None = None
    stop_reason: str | None = "end_turn"
    usage: Body | None = None
    without: tuple[str, ...] = ()
    delay: float = 0.0
    raw: bytes | None = None
    content_type: str = "application/json"
    drop: bool = False


@dataclass(frozen=True)
class Call:
    """One request as it came, without its key."""

    path: str
    headers: Mapping[str, str]
    body: Body


class ModelApi:
    """The server. `url` goes into ANTHROPIC_BASE_URL and `key` into ANTHROPIC_API_KEY."""

    def __init__(self, responder: Responder = lambda _: "A reply from the stand-in.") -> None:
        self.first_responder = self.responder = responder
        self.key = KEY
        self.calls: list[Call] = []
        self.steps: deque[Step] = deque()
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def script(self, *steps: Step) -> None:
        """Add steps for the calls to come."""
        self.steps.extend(steps)

    def finish(self) -> None:
        """End one test's use: complain of unused steps, then be as new for the next."""
        unused = len(self.steps)
        self.steps.clear()
        self.calls.clear()
        self.responder = self.first_responder
        if unused:
            raise AssertionError(f"{unused} scripted step(s) were never called for")

    def next_step(self) -> Step:
        try:
            return self.steps.popleft()
        except IndexError:
            return Step()

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        if error is None:
            self.finish()


def tokens(value: object) -> int:
    """The stand-in's count: a quarter of the bytes, rounded up."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return math.ceil(len(text.encode()) / 4)


def message(body: Body, step: Step, text: str, number: int) -> Body:
    """The answer to a request, as the API words it."""
    prompt_size = tokens(body.get("system", "")) + tokens(body["messages"])
    content = [{"type": "text", "text": text}] if step.content is None else step.content
    answer: Body = {
        "id": f"msg_{number:06}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": step.stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": {
            "input_tokens": prompt_size,
            "output_tokens": tokens(text),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "service_tier": "standard",
        }
        if step.usage is None
        else step.usage,
    }
    if step.stop_reason == "refusal":
        answer["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return {name: value for name, value in answer.items() if name not in step.without}


def failure(
    kind: str, said: str, request_id: str, details: Mapping[str, object] | None = None
) -> Body:
    """An error, as the API words it."""
    error: Body = {"type": kind, "message": said}
    if details is not None:
        error["details"] = dict(details)
    return {"type": "error", "error": error, "request_id": request_id}


def fault(body: object) -> str | None:
    """What the API would refuse in a request's body, in words; None where it would take it."""
    if not isinstance(body, dict):
        return "the body must be an object"
    if unknown := sorted(set(body) - BODY_KEYS):
        return f"{unknown[0]}: Extra inputs are not permitted"
    if missing := [name for name in REQUIRED if not body.get(name)]:
        return f"{missing[0]}: Field required"
    if body["messages"][0].get("role") != "user":
        return "messages: first message must use the user role"
    if body.get("stream"):
        return "stream: the stand-in does not stream"
    if body.get("output_config", {}).get("effort", "low") not in EFFORTS:
        return "output_config.effort: unknown value"
    if body.get("thinking", {}).get("type", "adaptive") not in THINKING:
        return "thinking.type: unknown value"
    system = body.get("system", [])
    blocks = [] if isinstance(system, str) else list(system)
    for turn in body["messages"]:
        if not turn.get("content"):
            return "messages: text content must be non-empty"
        blocks += turn["content"] if isinstance(turn["content"], list) else []
    if any(block.get("type") == "text" and not block.get("text") for block in blocks):
        return "text content blocks must be non-empty"
    if sum("cache_control" in block for block in [body, *blocks]) > 4:
        return "A maximum of 4 blocks with cache_control may be provided"
    return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    api: ModelApi

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that hangs up early is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    # Header and body leave together; in two writes each call would cost 40 ms.
    wbufsize = -1
    timeout = 10

    def do_POST(self) -> None:
        api = self.server.api
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        authorised = headers.pop("authorization", "") == f"Bearer {api.key}"
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        api.calls.append(Call(self.path, headers, body))
        number = len(api.calls)
        path = self.path.split("?")[0]
        counts = path == "/v1/messages/count_tokens"
        if path != "/v1/messages" and not counts:
            self._fail(404, "not_found_error", "Not found", number)
        elif not authorised:
            self._fail(401, "authentication_error", "invalid bearer token", number)
        elif "anthropic-version" not in headers:
            self._fail(
                400, "invalid_request_error", "anthropic-version: header is required", number
            )
        elif said := fault(
            {"max_tokens": 1, **body} if counts and isinstance(body, dict) else body
        ):
            self._fail(400, "invalid_request_error", said, number)
        else:
            self._follow(api.next_step(), body, number, counts=counts)

    def _follow(self, step: Step, body: Body, number: int, *, counts: bool) -> None:
        api = self.server.api
        if step.delay:
            api.closing.wait(step.delay)
        if step.drop:
            self.close_connection = True
        elif step.raw is not None:
            self._send(step.status, step.raw, number, step.headers, step.content_type)
        elif step.status != 200:
            self._fail(step.status, step.type, step.message, number, step)
        elif counts:
            size = tokens(body.get("system", "")) + tokens(body["messages"])
            self._send(200, json.dumps({"input_tokens": size}).encode(), number, step.headers)
        else:
            text = api.responder(body) if step.text is None else step.text
            answer = message(body, step, text, number)
            self._send(200, json.dumps(answer).encode(), number, step.headers)

    def _fail(
        self, status: int, kind: str, said: str, number: int, step: Step | None = None
    ) -> None:
        step = step or Step()
        body = failure(kind, said, f"req_{number:06}", step.details)
        self._send(status, json.dumps(body).encode(), number, step.headers)

    def _send(
        self,
        status: int,
        data: bytes,
        number: int,
        headers: Mapping[str, str],
        content_type: str = "application/json",
    ) -> None:
        self.send_response(status)
        own = {"content-type": content_type, "request-id": f"req_{number:06}"}
        for name, value in {**own, **headers, "content-length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the journal is `calls`."""
