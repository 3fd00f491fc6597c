"""Random entry tables for the codec tests, and how to compare what comes back."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import encode_dv
from icefloe.model.entries import ContentType, Status
from support.manifests.sample import (
    DAY,
    IDS,
    LOCATION,
    TYPES,
    UTC,
    VALUES,
    column_stats,
    data_file,
    mixed_partition,
    partition,
)

Row = dict[str, object]

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
NAMES = st.one_of(st.none(), TEXT, st.just("long " * 400))
DAYS = st.one_of(st.none(), st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)))
PRICES = st.one_of(st.none(), st.floats(), st.just(-0.0), st.just(math.nan))
LONGS = st.integers(-(2**63), 2**63 - 1)
BOUNDS = st.one_of(st.none(), LONGS)


@st.composite
def tracked(draw: st.DrawFn) -> Row:
    """How a row relates to snapshots; only ADDED rows may leave their numbers to be inherited."""
    status = draw(st.sampled_from(Status))
    numbers = st.integers(0, 2**40)
    if status == Status.ADDED and draw(st.booleans()):
        return {"status": int(status), "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    sequence = {"sequence_number": draw(numbers), "file_sequence_number": draw(numbers)}
    return {"status": int(status), "snapshot_id": draw(st.one_of(st.none(), numbers)), **sequence}


@st.composite
def data_rows(draw: st.DrawFn, version: int = 4) -> Row:
    """A data file of the spec MIXED, or of none."""
    count = draw(st.integers(1, 2**40))
    row = data_file(draw(st.integers(0, 99)), **draw(tracked()), record_count=count, format_version=version)
    if draw(st.booleans()):
        buckets = st.one_of(st.none(), st.integers(0, 15))
        row |= mixed_partition(draw(NAMES), draw(DAYS), draw(buckets), draw(PRICES), count=count)
    if draw(st.booleans()):
        nulls = draw(st.integers(0, count))
        in_null_bucket = row.get("null_value_count:p1002") == count  # so every id is null
        bounds = (None, None) if in_null_bucket else (draw(BOUNDS), draw(BOUNDS))
        row |= column_stats("id", *bounds, count=count, nulls=count if in_null_bucket else nulls)
    if draw(st.booleans()):
        row |= column_stats("raw", draw(st.binary(max_size=5)), None, count=count)
    if draw(st.booleans()):
        fewest = 0 if version == 4 else 1  # an empty list is read as none there
        row |= {"split_offsets": sorted(draw(st.sets(st.integers(0, 2**40), min_size=fewest, max_size=3)))}
    return row | {"sort_order_id": draw(st.one_of(st.none(), st.integers(0, 9))), "key_metadata": draw(KEYS)}


KEYS = st.one_of(st.none(), st.binary(max_size=4))


def every_type(count: int = 7) -> Row:
    """A data file partitioned by a column of every type, with bounds of every type."""
    row = data_file(5, partition_spec_id=2, record_count=count)
    for name, type_ in TYPES:
        floating = str(type_) in ("float", "double")
        row |= partition(1100 + IDS[name], VALUES[name], count=count, floating=floating)
        row |= column_stats(name, VALUES[name], VALUES[name], count=count)
    return row


def data_dv(number: int = 0, **changes: object) -> Row:
    return data_file(
        number,
        content_type=int(ContentType.POSITION_DELETES),
        location=f"{LOCATION}/data/{number:05d}.puffin",
        file_format="puffin",
        dv_offset=4,
        dv_size_in_bytes=42,
        record_count=3,
        referenced_file=f"{LOCATION}/data/{number:05d}.parquet",
        **changes,
    )


def equality_delete(number: int = 0, **changes: object) -> Row:
    return data_file(number, content_type=int(ContentType.EQUALITY_DELETES), equality_ids=[3, 10], **changes)


def manifest(number: int = 0, *, delete: bool = False, **changes: object) -> Row:
    kind = ContentType.DELETE_MANIFEST if delete else ContentType.DATA_MANIFEST
    counts: Row = {"added_files_count": 2, "existing_files_count": 1, "deleted_files_count": 0}
    counts |= {"added_rows_count": 20, "existing_rows_count": 10, "deleted_rows_count": 0, "min_sequence_number": 1}
    row = data_file(number, content_type=int(kind), location=f"{LOCATION}/metadata/m{number}.parquet", record_count=3)
    return row | counts | {"first_row_id": None if delete else 100} | changes


def manifest_dv(target: int = 0, positions: tuple[int, ...] = (1,), **changes: Any) -> Row:
    return data_file(
        content_type=int(ContentType.MANIFEST_DV),
        file_format="puffin",
        location=None,
        file_size_in_bytes=None,
        dv_inline_content=encode_dv(BitMap64(positions)),
        record_count=len(positions),
        referenced_file=f"{LOCATION}/metadata/m{target}.parquet",
        **changes,
    )


def aggregated(field_id: int, lower: object, upper: object, *, nulls: int = 0) -> Row:
    """The statistics of a partition field on a manifest row."""
    found = {f"lower_bound:p{field_id}": lower, f"upper_bound:p{field_id}": upper}
    return {**found, f"value_count:p{field_id}": 30, f"null_value_count:p{field_id}": nulls}


def mixed_manifest(number: int = 0, *, delete: bool = False) -> Row:
    row = manifest(number, delete=delete, partition_spec_id=1)
    row |= aggregated(1000, "a", "z") | aggregated(1001, DAY, dt.date(2027, 1, 1)) | aggregated(1002, 0, 15, nulls=4)
    row |= {**aggregated(1003, -1.5, 2.5), "nan_value_count:p1003": 1}
    return row | column_stats("ts", dt.datetime(2026, 11, 5, tzinfo=UTC), dt.datetime(2027, 1, 1, tzinfo=UTC))


def differences(before: pa.Table, after: pa.Table) -> dict[str, tuple[list[object], list[object]]]:
    """Columns of ``before`` that ``after`` does not have in the same form; a missing column counts as all null."""
    found = {}
    for field in before.schema:
        old = before[field.name]
        known = field.name in after.column_names
        new = after[field.name] if known else pa.chunked_array([pa.nulls(len(old), field.type)])
        if field.name != "ordinal" and not (new.type == old.type and _same(old, new)):
            found[field.name] = (old.to_pylist(), new.to_pylist())
    return found


def _same(old: pa.ChunkedArray, new: pa.ChunkedArray) -> bool:
    """Equality that distinguishes -0.0 from 0.0."""
    if not pa.types.is_floating(old.type):
        return bool(old.equals(new))
    return [repr(v) for v in old.to_pylist()] == [repr(v) for v in new.to_pylist()]
