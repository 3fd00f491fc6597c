"""An S3 server for tests: started once in a test run that needs it, with new buckets on request."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("moto_server.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running server."""

    endpoint: str

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a catalog on this server."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
            "s3.region": "us-east-1",
        }

    def new_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"lake-{uuid.uuid4().hex[:12]}"
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"), timeout=30).close()
        return name


@contextmanager
def s3_server(script: Path = SCRIPT) -> Iterator[S3Server]:
    """Start a server, a script that prints its port, and end it."""
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port.isdigit():
            raise RuntimeError("the S3 server did not start")
        yield S3Server(endpoint=f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
