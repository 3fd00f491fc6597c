"""An S3 server whose answers take a given time longer, and which counts requests; as a program it prints its port.

It is moto, as in the tests, in a process of its own. The time is added before a request is served, outside of the lock
that serves requests one by one, so requests that are sent at the same time wait at the same time. ``GET /-/latency/20``
sets it, ``GET /-/requests`` returns the requests since the last call. It ends with its standard input.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from werkzeug.serving import WSGIRequestHandler

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from support.servers.moto_server import moto, serve
from support.servers.s3 import S3Server, s3_server

CONTROL = "/-/"


class Slow:
    """A WSGI application that waits, then handles one request at a time; ``/-/`` controls it."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._served_s = 0.0
        self._wait_s = 0.0

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        if path.startswith(CONTROL):
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self._control(path.removeprefix(CONTROL))).encode()]
        with self._counting:
            self._requests[_kind(environ)] += 1
        time.sleep(self._wait_s)
        with self._lock:
            start = time.perf_counter()
            answer = list(self._application(environ, start_response))
            self._served_s += time.perf_counter() - start
        return answer

    def _control(self, order: str) -> dict[str, Any]:
        verb, _, value = order.partition("/")
        if verb == "latency":
            self._wait_s = float(value) / 1000
            return {}
        with self._counting:
            found = {"requests": dict(self._requests), "served_ms": round(self._served_s * 1000, 1)}
            self._requests.clear()
            self._served_s = 0.0
        return found


def _kind(environ: Any) -> str:
    """The request as S3 names it, as far as costs differ."""
    method = str(environ["REQUEST_METHOD"])
    listed = "list-type" in environ.get("QUERY_STRING", "") or "prefix=" in environ.get("QUERY_STRING", "")
    return "LIST" if method == "GET" and listed else method


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Say nothing."""


class SlowS3(S3Server):
    """A running server."""

    @property
    def delta_options(self) -> dict[str, str]:
        """The options of delta-rs for this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "aws_conditional_put": "etag",
        }

    def wait(self, milliseconds: int) -> None:
        """Delay every request by this time from now on."""
        self._ask(f"latency/{milliseconds}")

    def requests(self) -> dict[str, Any]:
        """The requests since the last call by kind, and the time that the server itself took for them."""
        return self._ask("requests")

    def _ask(self, order: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.endpoint}{CONTROL}{order}", timeout=30) as response:
            found: dict[str, Any] = json.loads(response.read())
        return found


@contextmanager
def slow_s3() -> Iterator[SlowS3]:
    """Start a server, and end it."""
    with s3_server(Path(__file__)) as server:
        yield SlowS3(endpoint=server.endpoint)


if __name__ == "__main__":
    serve(Slow(moto()), _Quiet)
