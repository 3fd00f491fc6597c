from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.errors import InputError
from icefloe.model.entries import ContentType, column_key
from icefloe.tree.disk_cache import DiskCache, DiskKey
from support.manifests.sample import context
from support.metadata_tree import stored_leaf
from unit.tree.test_store import ID, LEAF, NAME, keys, leaf_bytes, reads, storage, store_of


def key_of(location: str, length: int, *, schemas: str = "x", spec_id: int = 0) -> DiskKey:
    content = ContentType.DATA_MANIFEST
    return DiskKey(location=location, length=length, schemas=schemas, content=content, spec_id=spec_id)


KEY = key_of("s3://b/m0.avro", 10)
ROWS = pa.table(
    {"location": ["a", "b"], "lower_bound:1": [1, 2], "lower_bound:2": ["x", None], "value_count:p1": [3, 4]}
)


def test_a_table_comes_back_in_another_process(tmp_path: Path) -> None:
    DiskCache(str(tmp_path)).put(KEY, ROWS)
    again = DiskCache(str(tmp_path)).get(KEY)
    assert again is not None
    assert again.equals(ROWS)


def test_only_the_wanted_statistics_are_read(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path))
    cache.put(KEY, ROWS)
    part = cache.get(KEY, frozenset({column_key(2)}))
    assert part is not None
    assert part.column_names == ["location", "lower_bound:2", "value_count:p1"]


@pytest.mark.parametrize(
    "other",
    [
        key_of("s3://b/m1.avro", 10),
        key_of("s3://b/m0.avro", 11),
        key_of("s3://b/m0.avro", 10, schemas="y"),
        key_of("s3://b/m0.avro", 10, spec_id=1),
    ],
)
def test_location_length_and_shape_are_all_part_of_the_key(tmp_path: Path, other: DiskKey) -> None:
    cache = DiskCache(str(tmp_path))
    cache.put(KEY, ROWS)
    assert cache.get(other) is None


def test_damaged_files_are_ignored_and_replaced(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path))
    cache.put(KEY, ROWS)
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    for at in range(0, len(good), 7):
        file.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        assert cache.get(KEY) is None, at
        file.write_bytes(good[:at])
        assert cache.get(KEY) is None, at
    cache.put(KEY, ROWS)
    assert cache.get(KEY) is not None


def test_a_file_under_the_name_of_another_is_not_used(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path))
    cache.put(KEY, ROWS)
    (file,) = tmp_path.iterdir()
    other = key_of("s3://b/other.avro", 10)
    file.rename(tmp_path / f"{other.digest.hex()}.arrow")
    assert cache.get(other) is None


def test_the_folder_is_bounded_and_what_was_used_last_stays(tmp_path: Path) -> None:
    named = [key_of(str(n), 1) for n in range(6)]
    cache = DiskCache(str(tmp_path))
    cache.put(named[0], ROWS)
    size = next(tmp_path.iterdir()).stat().st_size
    cache = DiskCache(str(tmp_path), max_bytes=4 * size)
    for age, key in enumerate(named[1:4]):
        cache.put(key, ROWS)
        os.utime(tmp_path / f"{key.digest.hex()}.arrow", (1000 + age, 1000 + age))
    os.utime(tmp_path / f"{named[0].digest.hex()}.arrow", (900, 900))
    assert cache.get(named[0]) is not None  # now the most recently used
    cache.put(named[4], ROWS)
    assert [cache.get(key) is not None for key in named] == [True, False, False, True, True, False]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 4 * size


def test_what_is_larger_than_the_folder_may_be_is_not_kept(tmp_path: Path) -> None:
    DiskCache(str(tmp_path), max_bytes=10).put(KEY, ROWS)
    assert list(tmp_path.iterdir()) == []


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine" * 1000)
    cache = DiskCache(str(tmp_path), max_bytes=2000)
    for number in range(4):
        cache.put(key_of(str(number), 1), ROWS)
    assert (tmp_path / "notes.txt").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cache\.folder"):
        DiskCache(str(tmp_path / "file" / "folder"))


def test_a_folder_that_went_away_is_no_error(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "gone"))
    (tmp_path / "gone").rmdir()
    cache.put(KEY, ROWS)
    assert cache.get(KEY) is None


def test_a_second_process_decodes_nothing(tmp_path: Path) -> None:
    data = leaf_bytes()
    io = storage(m0=data)
    first = stored_leaf(store_of(io, disk=DiskCache(str(tmp_path))), LEAF, size=len(data))
    again = stored_leaf(store_of(io, disk=DiskCache(str(tmp_path))), LEAF, size=len(data))
    assert again.equals(first)
    assert reads(io) == 1
    part = stored_leaf(store_of(io, disk=DiskCache(str(tmp_path))), LEAF, size=len(data), wanted=frozenset({ID}))
    assert keys(part) == {ID}
    assert keys(first) == {ID, NAME}


def test_the_fingerprint_of_a_table_does_not_depend_on_the_process() -> None:
    assert context(2).fingerprint == context(2).fingerprint
    assert len({context(v).fingerprint for v in (2, 4)}) == 2  # version 4 has expressions
