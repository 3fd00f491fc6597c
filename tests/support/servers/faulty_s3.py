"""A small S3 server in the process of the test that fails on demand: by a status, a closed connection or no answer."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MARK = "x-amz-meta-writer"
HANG_UP = 0
SILENCE = -1
PATIENCE_S = 0.3  # how long the client waits for an answer that does not come


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with the next request of a method; ``after`` its effect or instead of it."""

    method: str
    status: int
    after: bool = False


class ScriptedS3(ThreadingHTTPServer):
    """Objects by path, faults to come, and the methods of the requests so far."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.lock = threading.Lock()
        self.marks: dict[str, str] = {}  # the mark of its writer that an object carries, by path
        self.keeps_marks = True  # as stores do that keep the metadata of objects
        self.faults: list[Fault] = []
        self.chance: Callable[[str, str], Fault | None] = lambda method, path: None  # faults by request
        self.requests: list[str] = []
        self.authorizations: list[str] = []
        self.protected: set[str] = set()  # what may not be deleted

    @property
    def properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": f"http://127.0.0.1:{self.server_port}",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "s3.region": "us-east-1",
            "s3.request-timeout": str(PATIENCE_S),
        }

    def next_fault(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.method == method:
                self.faults.remove(fault)
                return fault
        return self.chance(method, path)


@contextmanager
def scripted_s3() -> Iterator[ScriptedS3]:
    server = ScriptedS3()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ScriptedS3
    _mark = ""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_PUT = do_DELETE = do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        self._mark = ""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(self.command)
        self.server.authorizations.append(self.headers.get("Authorization", ""))
        fault = self.server.next_fault(self.command, self.path)
        if fault is None:
            self._answer(*self._effect(body))
            return
        if fault.after:
            self._effect(body)
        if fault.status == SILENCE:
            time.sleep(2 * PATIENCE_S)
        if fault.status in (HANG_UP, SILENCE):
            self.close_connection = True
            return
        self._answer(fault.status, b"<Error><Code>Scripted</Code></Error>")

    def _effect(self, body: bytes) -> tuple[int, bytes]:
        objects, path = self.server.objects, self.path.partition("?")[0]
        if self.command == "PUT":
            with self.server.lock:
                if self.headers.get("If-None-Match") == "*" and path in objects:
                    return 412, b""
                objects[path] = body
            if self.server.keeps_marks:
                self.server.marks[path] = self.headers.get(MARK, "")
            return 200, b""
        if self.command == "POST":
            return 200, self._deleted(re.findall(rb"<Key>(.*?)</Key>", body), path)
        if "list-type=2" in self.path:
            return 200, self._listed(path)
        if path not in objects:
            return 404, b""
        if self.command == "DELETE":
            if path in self.server.protected:
                return 403, b""
            del objects[path]
            return 204, b""
        self._mark = self.server.marks.get(path, "")
        return self._ranged(objects[path])

    def _listed(self, bucket: str) -> bytes:
        prefix = parse_qs(urlsplit(self.path).query).get("prefix", [""])[0]
        whole = f"{bucket.rstrip('/')}/{prefix}"
        found = {path: data for path, data in list(self.server.objects.items()) if path.startswith(whole)}
        entries = (
            f"<Contents><Key>{path.split('/', 2)[2]}</Key><Size>{len(data)}</Size>"
            f"<LastModified>2026-11-01T00:00:00.000Z</LastModified></Contents>"
            for path, data in found.items()
        )
        return f"<ListBucketResult>{''.join(entries)}<IsTruncated>false</IsTruncated></ListBucketResult>".encode()

    def _deleted(self, keys: list[bytes], bucket: str) -> bytes:
        parts = []
        for key in keys:
            path = f"{bucket}/{key.decode()}"
            if path in self.server.protected:
                parts.append(b"<Error><Key>%s</Key><Code>AccessDenied</Code><Message>no</Message></Error>" % key)
            else:
                self.server.objects.pop(path, None)
                parts.append(b"<Deleted><Key>%s</Key></Deleted>" % key)
        return b"<DeleteResult>%s</DeleteResult>" % b"".join(parts)

    def _ranged(self, data: bytes) -> tuple[int, bytes]:
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            return 200, data
        first = int(asked[1]) if asked[1] != "" else max(0, len(data) - int(asked[2]))
        last = len(data) if asked[1] == "" or asked[2] == "" else min(len(data), int(asked[2]) + 1)
        if first >= len(data):
            return 416, b""
        self._range = f"bytes {first}-{last - 1}/{len(data)}"
        return 206, data[first:last]

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"tag"')
        self.send_header("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT")
        if status == 206:
            self.send_header("Content-Range", self._range)
        if self._mark != "":
            self.send_header(MARK, self._mark)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
