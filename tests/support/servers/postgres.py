"""A PostgreSQL server for tests: its programs come from Maven on first use, and it runs while the tests do.

The programs are kept in ``.cache``. The server is reached by a socket in a temporary folder, so no port can be taken.
It refuses to run as root: there it runs as an unprivileged user. Where it cannot be had, tests fail and say why.
"""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.jars import CACHE, Artifact, fetch, one_at_a_time

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64v8"}
_SECONDS_TO_START = 60.0


def server_artifact() -> Artifact:
    """The archive of the server's programs for this machine."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return Artifact(
        group="io.zonky.test.postgres", name=f"embedded-postgres-binaries-linux-{machine}", version="17.5.0"
    )


class PostgresServer:
    """A running server; its one user needs no password."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process

    def uri(self, database: str) -> str:
        """The URL of a database, as a user would write it."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection of the test's own, which commits by itself."""
        return psycopg.connect(host=str(self.folder), user="postgres", dbname=database, autocommit=True)

    def new_database(self) -> str:
        """Make an empty database: its name."""
        name = f"test_{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server, started when the first test asks for it."""
    folder = Path(tempfile.mkdtemp(prefix="icefloe-postgres-"))
    try:
        yield from _run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_uri(postgres_server: PostgresServer) -> str:
    """The URL of an empty database."""
    return postgres_server.uri(postgres_server.new_database())


def _run(folder: Path) -> Iterator[PostgresServer]:
    user = _unprivileged()
    folder.chmod(0o755)
    programs = _reachable(_programs(), folder)
    data = folder / "data"
    data.mkdir(mode=0o700)
    if len(user) > 0:
        os.chown(folder, user["user"], user["group"])
        os.chown(data, user["user"], user["group"])
    made = subprocess.run(
        [programs / "bin/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        **user,
    )
    if made.returncode != 0:
        raise RuntimeError(f"initdb failed (exit {made.returncode}):\n{made.stdout}{made.stderr}")
    with (folder / "log").open("wb") as log:
        # -F: no fsync, which takes most of the time of making a database; no test cuts the power.
        command = [programs / "bin/postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-N", "50", "-F"]
        process = subprocess.Popen(list(map(str, command)), cwd=folder, stdout=log, stderr=log, **user)
    try:
        server = PostgresServer(folder, process)
        _wait(server)
        yield server
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: the data is not needed any more
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(server: PostgresServer) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while True:
        try:
            server.connect().close()
            return
        except psycopg.OperationalError as error:
            if server.process.poll() is not None or time.monotonic() > deadline:
                log = (server.folder / "log").read_text("utf-8", errors="replace")
                raise RuntimeError(f"the server did not start ({error}):\n{log}") from error
            time.sleep(0.05)


def _programs() -> Path:
    """The folder of the server's programs, unpacked on first use."""
    artifact = server_artifact()
    target = CACHE.parent / f"postgres-{artifact.version}"
    if target.exists():
        return target
    jar = fetch(artifact)
    with one_at_a_time(CACHE):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=CACHE, prefix=".unpacking-") as folder:
                inside = Path(folder) / "postgres"
                _unpack(jar, inside)
                os.replace(inside, target)
    return target


def _unpack(jar: Path, folder: Path) -> None:
    with zipfile.ZipFile(jar) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".txz"))
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as tar:
            tar.extractall(folder, filter="data")


def _reachable(programs: Path, folder: Path) -> Path:
    """The programs where another user may run them: copied, if a folder above them is closed."""
    if os.getuid() != 0 or all(parent.stat().st_mode & 0o001 == 0o001 for parent in programs.parents):
        return programs
    return Path(shutil.copytree(programs, folder / "programs"))


def _unprivileged() -> dict[str, Any]:
    """What makes a child process run as a user who is not root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
