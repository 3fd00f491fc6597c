"""Runs the checker of the conformance kit on the V4 tables of tests.

The checker shares no code with icefloe, so it finds faults that a reader and a writer have in common.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from icefloe.commit.base import Base, TablePointer
from icefloe.errors import IcefloeError
from icefloe.io.file_io import FileIO
from icefloe.model.metadata.version_rules import LATEST_FORMAT_VERSION
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from support.metadata_tree import Tree

CONFORMANCE = Path(__file__).resolve().parents[2] / "conformance"
sys.path.insert(0, str(CONFORMANCE))
check_v4: Any = import_module("check_v4")

_HEAD_BYTES = 200  # of a metadata file, in which its format version is
_GZIP = b"\x1f\x8b"
_VERSION_4 = (b'"format-version":4', b'"format-version": 4')
_PASSED = pytest.StashKey[bool]()


def nonconformities(table: Table | Base, *, data: bool = True, rows: bool = False) -> list[str]:
    """What the checker finds in a table, wherever its files are; nothing in tables of other versions."""
    base = pointer_of(table).load() if isinstance(table, Table) else table
    return [str(finding) for finding in _findings(base, base.store.io, data=data, rows=rows)]


def nonconformities_in(folder: Path) -> Iterator[str]:
    """What the checker finds in the V4 tables of a folder, each at its newest metadata file that was committed."""
    found = [path for path in folder.rglob("*.metadata.json*") if path.parent.name == "metadata"]
    for table in sorted({path.parent.parent for path in found}):
        files = (path for path in found if path.parent.parent == table)
        for file in sorted(files, key=check_v4.metadata_number, reverse=True):
            data = file.read_bytes()
            try:
                document = gzip.decompress(data) if data[:2] == _GZIP else data
            except (EOFError, OSError, zlib.error):
                continue  # half of a file, as crashes leave it
            if not document.rstrip().endswith(b"}"):
                continue
            if not any(text in document[:_HEAD_BYTES] for text in _VERSION_4):
                break
            findings, _ = check_v4.check(file)
            # A commit that failed may leave its metadata file, but not its root.
            if not any(finding.rule == "files" and ".metadata.json" in finding.file for finding in findings):
                yield from (f"{file}: {finding}" for finding in findings if not _is_made_by_test(finding))
                break


def _findings(base: Base, io: FileIO, *, data: bool = True, rows: bool = False) -> list[Any]:
    metadata = base.metadata
    if metadata.format_version != LATEST_FORMAT_VERSION:
        return []

    def read(place: str) -> bytes:
        try:
            return bytes(io.read(place if place.startswith("/") or "://" in place else f"{metadata.location}/{place}"))
        except IcefloeError as error:
            raise OSError(str(error)) from error

    name = Path(base.pointer.rpartition("/")[2])
    options = {"check_files": data, "check_rows": rows}
    findings, _ = check_v4.check(name, read=read, location=metadata.location, **options)
    return list(findings)


def _is_made_by_test(finding: Any) -> bool:
    """Whether a test may have caused it without a fault of the writer.

    Tests delete files of data and deletes, add entries of files that never existed, and replace manifests of older
    versions by those of other writers, which manifest lists then state with another size.
    """
    is_manifest_of_v4 = "metadata/" in finding.message.partition(" ")[0] and not finding.file.endswith(".avro")
    return finding.rule == "files" and not is_manifest_of_v4


class UsedTables:
    """The tables that were loaded or committed to, wherever they are, each in its newest state, and bare trees."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, str], tuple[Base, FileIO]] = {}
        self.trees: list[Tree] = []

    def note(self, io: FileIO, base: Base) -> None:
        """Note a state of a table, and the store that counting, failing and waiting file systems wrap."""
        while hasattr(io, "inner"):
            io = io.inner
        key = (id(io), base.metadata.location)
        if key not in self._states or _age(self._states[key][0]) <= _age(base):
            self._states[key] = (base, io)

    def nonconformities(self, *, outside: Path | None = None) -> Iterator[str]:
        """What the checker finds in these tables, except those in a folder and those that are gone."""
        for tree in self.trees:
            self.note(tree.io, tree.base())
        for base, io in self._states.values():
            is_inside = outside is not None and base.pointer.startswith((str(outside), f"file://{outside}"))
            if not is_inside and io.exists(base.pointer):
                findings = _findings(base, io)
                yield from (f"{base.pointer}: {finding}" for finding in findings if not _is_made_by_test(finding))


@contextmanager
def used_tables() -> Iterator[UsedTables]:
    """Note every table that is loaded or committed to in this process."""
    used = UsedTables()

    def noting(method: Callable[..., Base]) -> Callable[..., Base]:
        def note(pointer: TablePointer, *args: Any, **options: Any) -> Base:
            base = method(pointer, *args, **options)
            used.note(pointer.io, base)
            return base

        return note

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TablePointer, "load", noting(TablePointer.load))
        patch.setattr(TablePointer, "remember", noting(TablePointer.remember))
        patch.setattr(Tree, "made", used.trees)
        yield used


def _age(base: Base) -> tuple[int, int]:
    return base.metadata.last_updated_ms, base.metadata.last_sequence_number


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test has passed, for the fixture below."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def conforming_tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks the V4 tables that a test has used or left in its folder, unless it is marked ``broken_tables``."""
    node = request.node
    if node.get_closest_marker("broken_tables") is not None:
        yield
        return
    # Asked for here, so that the folder is removed after the check.
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    with used_tables() as used:
        yield
    if node.stash.get(_PASSED, False):
        findings = [] if folder is None else list(nonconformities_in(folder))
        findings += used.nonconformities(outside=folder)
        assert findings == [], "the table does not conform to version 4:\n" + "\n".join(findings[:20])
