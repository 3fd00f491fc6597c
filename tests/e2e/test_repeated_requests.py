"""Stores that apply a put and answer 409, 412, 500 or nothing: no acknowledged commit is lost, none is doubled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.catalogs.file_versions import FileVersions
from icefloe.env import SYSTEM
from icefloe.errors import CommitFailed, CommitStateUnknown, IcefloeError, StorageError
from icefloe.io.exclusive import ExclusivePut
from icefloe.io.select import file_io
from icefloe.table.table import Table
from support.servers.faulty_s3 import HANG_UP, Fault, ScriptedS3, scripted_s3

ENV = replace(SYSTEM, sleep=lambda seconds: None)
ANSWERS = (409, 412, 500, HANG_UP)
KINDS = ("folder", "sql")


@pytest.fixture
def server() -> Iterator[ScriptedS3]:
    with scripted_s3() as server:
        yield server


@dataclass
class Lake:
    """A table in a folder, or in a SQL catalog; every ``table`` is that of another program."""

    server: ScriptedS3
    path: Path
    kind: str
    version: int
    acknowledged: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        made = self._catalog().create_table("db.t", schema="id bigint", format_version=self.version)
        if self.kind == "folder":
            io = file_io("s3://b/wh", self.server.properties)
            FileVersions(io, "s3://b/wh/db/t", ExclusivePut(io)).create(made.metadata_location, keep=False)

    def table(self) -> Table:
        if self.kind == "folder":
            return icefloe.open_table("s3://b/wh/db/t", properties=self.server.properties, env=ENV)
        return self._catalog().load_table("db.t")

    def append(self, number: int) -> None:
        try:
            self.table().append(pa.table({"id": [number]}), retries=30)
            self.acknowledged.append(number)
        except CommitStateUnknown:
            self.unknown.append(number)
        except (StorageError, CommitFailed):
            """Proves that nothing was committed."""

    def check(self) -> None:
        """Every acknowledged row is there once, the others of unknown outcome at most once."""
        self.server.chance = lambda method, path: None
        table = self.table()
        counts = Counter(table.scan().to_arrow()["id"].to_pylist())
        assert set(counts.values()) <= {1}
        assert set(self.acknowledged) <= set(counts) <= {*self.acknowledged, *self.unknown}
        assert len({s.snapshot_id for s in table.snapshots}) == len(table.snapshots) == len(counts)
        assert table.verify().ok

    def _catalog(self) -> icefloe.Catalog:
        uri = f"sqlite:///{self.path}/catalog.db"
        return icefloe.catalog("lake", uri=uri, warehouse="s3://b/wh", properties=self.server.properties)


def is_put(method: str, path: str) -> bool:
    """Whether a request puts a file of metadata, which has a condition."""
    return method == "PUT" and "/metadata/" in path


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_whose_puts_were_applied_is_acknowledged_once(
    server: ScriptedS3, tmp_path: Path, kind: str, answer: int
) -> None:
    """A folder table listed a snapshot id twice after a 412 to an applied put, and no program opened it again."""
    lake = Lake(server, tmp_path, kind, version=2)
    seen: set[str] = set()

    def fault(method: str, path: str) -> Fault | None:
        is_first = is_put(method, path) and path not in seen
        seen.add(path)
        return Fault(method="PUT", status=answer, after=True) if is_first else None

    server.chance = fault
    for number in range(3):
        table = lake.table()
        result = table.append(pa.table({"id": [number]}))
        assert result.attempts == 1
        table.set_properties({"n": str(number)})
        lake.acknowledged.append(number)
    assert lake.table().properties["n"] == "2"
    lake.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_metadata_file_that_is_never_stored_is_a_retryable_error(
    server: ScriptedS3, tmp_path: Path, kind: str
) -> None:
    lake = Lake(server, tmp_path, kind, version=2)
    table = lake.table()
    refused = Fault(method="PUT", status=412)
    server.chance = lambda method, path: refused if is_put(method, path) and "metadata.json" in path else None
    with pytest.raises(IcefloeError) as caught:
        table.set_properties({"a": "b"})
    assert caught.value.retryable
    lake.check()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_no_acknowledged_commit_is_lost_or_doubled_in_a_random_history(
    server: ScriptedS3, tmp_path: Path, kind: str, version: int, seed: int
) -> None:
    lake, chance = Lake(server, tmp_path, kind, version), random.Random(seed)

    def fault(method: str, path: str) -> Fault | None:
        if not is_put(method, path) or chance.random() > 0.3:
            return None
        return Fault(method="PUT", status=chance.choice(ANSWERS), after=chance.random() < 0.6)

    server.chance = fault
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lake.append, range(12)))
    assert len(lake.acknowledged) > 0
    lake.check()
