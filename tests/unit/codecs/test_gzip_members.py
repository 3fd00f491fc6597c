"""Metadata in gzip members: one text for every reader, and blocks of snapshots that are compressed once."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import pytest

from icefloe.codecs.json.gzip_members import MemberCache, beginning, compressed, encode_members
from icefloe.codecs.json.snapshots import LazySnapshots
from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.model.metadata.table_metadata import TableMetadata
from support.metadata_documents import LOCATION, WHERE, decode, document, plain, snapshot, value


def table(snapshots: int, version: int = 4) -> TableMetadata:
    made = [snapshot(number, manifest_list=f"{LOCATION}/metadata/{number}.avro") for number in range(snapshots)]
    log = [{"timestamp-ms": number, "snapshot-id": number} for number in range(snapshots)]
    return decode(document(version, snapshots=made, current_snapshot_id=None, snapshot_log=log))


class Compressions:
    """Counts the texts that are compressed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        real = zlib.compressobj

        def compressobj(*arguments: Any, **options: Any) -> Any:
            stream = real(*arguments, **options)
            self.sizes.append(0)
            counts = self

            class Counted:
                def compress(self, data: bytes) -> bytes:
                    counts.sizes[-1] += len(data)
                    return stream.compress(data)

                def flush(self) -> bytes:
                    return stream.flush()

            return Counted()

        patch.setattr(zlib, "compressobj", compressobj)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 129, 300])
def test_members_are_one_text_for_every_reader(count):
    metadata = table(count)
    data = encode_metadata(metadata, compression="gzip")
    assert gzip.decompress(data) == encode_metadata(metadata)
    assert plain(decode_metadata(data, where=WHERE)) == plain(metadata)
    assert beginning(data[:512], 40) == encode_metadata(metadata)[:40]


def test_a_commit_compresses_its_own_snapshots_only(monkeypatch):
    """Of 3.5 MB at 5,000 snapshots it took a third of the time of a commit."""
    metadata = table(1000)
    encode_metadata(metadata, compression="gzip")
    counted = Compressions(monkeypatch)
    grown = metadata.with_snapshot(value(5000))
    data = encode_metadata(grown, compression="gzip")
    assert len(counted.sizes) == 3  # what is before, between and after the blocks of snapshots and of their log
    assert sum(counted.sizes) < len(encode_metadata(grown)) / 10
    assert isinstance(grown.snapshots, LazySnapshots)
    assert data == encode_metadata(decode_metadata(data, where=WHERE), compression="gzip")


def test_the_bytes_do_not_depend_on_what_was_written_before():
    metadata = table(192)
    encode_metadata(metadata.with_snapshot(value(5000)).with_snapshot(value(5001)), compression="gzip")
    for changed in (
        metadata.without_snapshots(frozenset(range(10))),
        metadata.without_snapshots(frozenset(range(180))),
        metadata.with_snapshot(value(6000)).with_snapshot(value(6001)),
    ):
        data = encode_metadata(changed, compression="gzip")
        assert gzip.decompress(data) == encode_metadata(changed)
        assert data == encode_metadata(decode_metadata(data, where=WHERE), compression="gzip")


def test_blocks_of_a_list_that_became_shorter_are_forgotten():
    cache = MemberCache()
    for length in (1000, 10, 0):
        encode_members({"log": list(range(length)), "n": 1}, ["log"], cache)
        assert len(cache._entries) == max(0, (length - 1) // 64)


@pytest.mark.parametrize("version", [2, 3])
def test_earlier_versions_have_one_member(version):
    data = encode_metadata(table(300, version), compression="gzip")
    stream = zlib.decompressobj(wbits=31)
    stream.decompress(data)
    assert (stream.eof, stream.unused_data) == (True, b"")


def test_the_beginning_of_damaged_gzip_is_empty():
    data = compressed(b"x" * 100)
    assert beginning(data, 10) == b"x" * 10
    assert beginning(b"plain text", 5) == b"plain"
    assert beginning(data[:3] + b"\xff" + data[4:], 10) == b""
