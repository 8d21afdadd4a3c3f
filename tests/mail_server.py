"""A stand-in for a mail server on loopback: takes every message and keeps it."""

from __future__ import annotations

import email
import email.message
import email.policy
import socketserver
import threading
from types import TracebackType


class _Conversation(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._say("220 stand-in")
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                self._say("354 go on")
                self.server.take(self._message())  # type: ignore[attr-defined]
            self._say("221 bye" if verb == b"QUIT" else "250 fine")
            if verb == b"QUIT":
                return

    def _message(self) -> bytes:
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        return b"".join(lines)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class MailServer(socketserver.ThreadingTCPServer):
    """`messages` has what came, oldest first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.messages: list[email.message.EmailMessage] = []

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.server_address[1]}"

    def take(self, raw: bytes) -> None:
        self.messages.append(email.message_from_bytes(raw, policy=email.policy.default))

    def __enter__(self) -> MailServer:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()
        self.server_close()
