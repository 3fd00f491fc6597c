"""Runs the checker of the conformance kit on the V4 tables of tests.

The checker shares no code with icefloe, so it finds faults that a reader and a writer have in common.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from icefloe.commit.base import Base
from icefloe.errors import IcefloeError
from icefloe.model.metadata.version_rules import LATEST_FORMAT_VERSION
from icefloe.table.table import Table

CONFORMANCE = Path(__file__).resolve().parents[2] / "conformance"
sys.path.insert(0, str(CONFORMANCE))
check_v4: Any = import_module("check_v4")

_HEAD_BYTES = 200  # of a metadata file, in which its format version is
_VERSION_4 = (b'"format-version":4', b'"format-version": 4')
_PASSED = pytest.StashKey[bool]()


def nonconformities(table: Table | Base, *, data: bool = True) -> list[str]:
    """What the checker finds in a table, wherever its files are; nothing in tables of other versions."""
    base = table._pointer.load() if isinstance(table, Table) else table
    metadata, io = base.metadata, base.store.io
    if metadata.format_version != LATEST_FORMAT_VERSION:
        return []

    def read(place: str) -> bytes:
        try:
            return bytes(io.read(place if place.startswith("/") or "://" in place else f"{metadata.location}/{place}"))
        except IcefloeError as error:
            raise OSError(str(error)) from error

    name = Path(base.pointer.rpartition("/")[2])
    findings, _ = check_v4.check(name, read=read, location=metadata.location, check_files=data)
    return [str(finding) for finding in findings]


def nonconformities_in(folder: Path) -> Iterator[str]:
    """What the checker finds in the V4 tables of a folder, each at its newest metadata file."""
    tables = {path.parent.parent for path in folder.rglob("*.metadata.json*") if path.parent.name == "metadata"}
    for table in sorted(tables):
        newest = check_v4.newest_metadata(table)
        data = newest.read_bytes()
        is_whole = data.rstrip().endswith(b"}")  # not half of a file, as crashes leave it
        if is_whole and any(text in data[:_HEAD_BYTES] for text in _VERSION_4):
            findings, _ = check_v4.check(newest)
            # Tests delete files, and add entries of files that never existed; verify is there to find that.
            yield from (f"{newest}: {finding}" for finding in findings if finding.rule != "files")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember whether a test has passed, for the fixture below."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def conforming_tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks the V4 tables that a test leaves in its folder, unless it is marked ``broken_tables``."""
    node = request.node
    is_broken = node.get_closest_marker("broken_tables") is not None
    if is_broken or "tmp_path" not in request.fixturenames:
        yield
        return
    folder = request.getfixturevalue("tmp_path")  # so that it is removed after the check
    yield
    if node.stash.get(_PASSED, False):
        findings = list(nonconformities_in(folder))
        assert findings == [], "the table does not conform to version 4:\n" + "\n".join(findings[:20])
