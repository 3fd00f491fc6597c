"""Content files as JSON: entries survive, what JSON cannot say is refused, untrusted input is located."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.json.content_file import content_files_from_json, content_files_to_json
from icefloe.errors import FormatError, InputError, LimitError, UnsupportedError
from icefloe.limits import Limits
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import entries, partition_key
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.types import TIMESTAMPTZ_NS
from support.damage import damaged_json
from support.manifests.random_entries import data_dv, data_rows, differences, equality_delete, every_type, manifest
from support.manifests.sample import IDS, column_stats, context, data_file, mixed_partition, partition, table

HISTORY = ["format_version", "status", "snapshot_id", "sequence_number", "file_sequence_number"]


def through_json(files: pa.Table) -> pa.Table:
    text = json.dumps(content_files_to_json(files, context()), allow_nan=False)
    return content_files_from_json(json.loads(text), context())


def one(**changes: object) -> dict[str, Any]:
    """A data file of spec 1 as JSON."""
    found = content_files_to_json(table([data_file(**mixed_partition())]), context())[0]
    return {key: value for key, value in (found | changes).items() if value is not None}


def test_bounds_and_partition_values_of_every_type_survive():
    before = table([every_type()])

    assert list(differences(before, through_json(before))) == HISTORY


def test_all_kinds_of_files_of_several_specs_stand_in_one_list():
    rows = [data_dv(0, first_row_id=None), every_type(), equality_delete(3), data_file(7, **mixed_partition(None))]
    before = table([*rows, data_file(8, first_row_id=5, sort_order_id=1, split_offsets=[4, 2**40])])

    after = through_json(before)

    assert list(differences(before, after)) == HISTORY
    assert after["ordinal"].to_pylist() == [0, 1, 2, 3, 4]
    assert after["value_count:p1000"].to_pylist() == [None, None, None, 10, None]  # only where the spec has the field
    assert after["null_value_count:p1000"].to_pylist() == [None, None, None, 10, None]


@given(st.lists(data_rows(), max_size=5))
def test_random_files_survive(rows):
    before = table(rows)
    nan = [row for row in rows if row.get("nan_value_count:p1003", 0) != 0]
    infinite = [row for row in rows if row.get("lower_bound:p1003") in (math.inf, -math.inf)]
    if len(nan) + len(infinite) > 0:
        with pytest.raises(InputError, match=r"'price'.*JSON has no number"):
            content_files_to_json(before, context())
    else:
        assert set(differences(before, through_json(before))) <= set(HISTORY)


def test_the_history_of_an_entry_is_not_part_of_a_content_file():
    after = through_json(table([data_file()]))

    assert [after[name].to_pylist() for name in HISTORY] == [[None]] * len(HISTORY)


def test_column_sizes_survive_and_sizes_of_values_do_not():
    row = data_file(**column_stats("name", "a", "b"))
    before = table([row | {"column_size:10": 77, "avg_value_size_in_bytes:10": 3, "tight_bounds:10": True}])

    assert content_files_to_json(before, context())[0]["column-sizes"] == {"keys": [10], "values": [77]}
    assert sorted(differences(before, through_json(before))) == sorted(
        [*HISTORY, "avg_value_size_in_bytes:10", "tight_bounds:10"]
    )


def test_slices_and_chunks_of_entries_are_written_where_they_are():
    whole = table([data_file(n, **mixed_partition(f"n{n}")) for n in range(4)])
    chunked = pa.concat_tables([whole.slice(3), whole.slice(1, 2)])

    written = content_files_to_json(chunked, context())

    assert [file["partition"]["1000"] for file in written] == ["n3", "n1", "n2"]
    assert [file["file-size-in-bytes"] for file in written] == [1003, 1001, 1002]


def test_no_files_are_an_empty_list():
    assert content_files_to_json(table([]), context()) == []
    assert content_files_from_json([], context()).num_rows == 0


def test_keys_without_a_value_are_left_out_and_the_rest_is_in_the_order_of_the_specification():
    assert list(one()) == [
        "spec-id",
        "content",
        "file-path",
        "file-format",
        "partition",
        "record-count",
        "file-size-in-bytes",
    ]


def test_a_void_field_has_null_in_the_tuple_and_no_statistics():
    assert one()["partition"] == {"1000": "a", "1001": "2026-11-05", "1002": 3, "1003": 1.5, "1004": None}
    assert "value_count:p1004" not in content_files_from_json([one()], context()).column_names


@pytest.mark.parametrize("content", ["position-deletes", "POSITION_DELETES", "Position_Deletes"])
def test_names_are_read_as_rest_catalogs_spell_them_too(content):
    read = content_files_from_json([one(content=content, **{"file-format": "orc"})], context())

    assert read["content_type"].to_pylist() == [1]
    assert read["file_format"].to_pylist() == ["orc"]


def test_a_partition_is_read_from_a_list_in_the_order_of_the_spec():
    listed = one(partition=["a", "2026-11-05", 3, 1.5, None])

    assert content_files_from_json([listed], context()).equals(content_files_from_json([one()], context()))


def test_a_partition_value_that_is_left_out_is_null():
    read = content_files_from_json([one(partition={"1000": "a"})], context())

    assert read["lower_bound:p1001"].to_pylist() == [None]
    assert read["null_value_count:p1001"].to_pylist() == [10]


def test_an_unpartitioned_file_needs_no_partition():
    assert content_files_from_json([one(**{"spec-id": 0, "partition": None})], context()).num_rows == 1


def test_statistics_of_columns_that_the_table_does_not_know_are_dropped():
    read = content_files_from_json([one(**{"value-counts": {"keys": [3, 999], "values": [5, 6]}})], context())

    assert read["value_count:3"].to_pylist() == [5]
    assert "value_count:999" not in read.column_names


def test_a_bound_that_is_no_value_of_its_column_is_unknown():
    """Planning by a catalog failed as a whole when one file had a bound of too many bytes."""
    bounds = {"keys": [IDS["id"], IDS["small"]], "values": ["000102", "07000000"]}
    read = content_files_from_json([one(**{"lower-bounds": bounds})], context())
    assert read[f"lower_bound:{IDS['id']}"].to_pylist() == [None]
    assert read[f"lower_bound:{IDS['small']}"].to_pylist() == [7]


def test_bounds_from_before_a_promotion_are_read():
    bounds = {"keys": [IDS["id"], IDS["seen"]], "values": ["05000000", "01000000"]}

    read = content_files_from_json([one(**{"lower-bounds": bounds})], context())

    assert read[f"lower_bound:{IDS['id']}"].to_pylist() == [5]
    assert str(read[f"lower_bound:{IDS['seen']}"][0]) == "1970-01-02 00:00:00"


BROKEN = [
    ("not an object", "files[1]"),
    ({"content": "DATA"}, "files[1]"),
    (one(**{"file-path": None}), "files[1]"),
    (one(**{"file-path": "\ud800"}), "files[1].file-path: expected a string of Unicode characters"),
    (one(**{"record-count": -1}), "files[1].record-count"),
    (one(**{"record-count": "1"}), "files[1].record-count"),
    (one(**{"record-count": True}), "files[1].record-count"),
    (one(**{"file-size-in-bytes": 2**63}), "files[1].file-size-in-bytes"),
    (one(content="MANIFEST_DV"), "files[1].content"),
    (one(content="rows"), "files[1].content"),
    (one(content="EQUALITY_DELETES"), "files[1]: missing equality-ids"),
    (one(**{"content-offset": 4}), "files[1]: missing content-size-in-bytes, referenced-data-file"),
    (one(**{"spec-id": 9}), "files[1].spec-id: the table has no partition spec 9"),
    (one(partition=None), "files[1]: missing partition"),
    (one(partition={"1000": 7}), "files[1].partition.1000: expected a string, got 7"),
    (one(partition={"1001": "2026-11-31"}), "files[1].partition.1001"),
    (one(partition={"name": "a"}), "files[1].partition: spec 1 has no partition field 'name'"),
    (one(partition=["a"]), "files[1].partition: expected 5 values, got 1"),
    (one(**{"key-metadata": "xyz"}), "files[1].key-metadata: expected hexadecimal digits in pairs"),
    (one(**{"value-counts": {"keys": [1], "values": []}}), "files[1].value-counts: 1 keys but 0 values"),
    (one(**{"value-counts": {"keys": ["1"], "values": [1]}}), "files[1].value-counts.keys[0]"),
    (one(**{"value-counts": {"1": 1}}), "files[1].value-counts"),
    (one(**{"lower-bounds": {"keys": [3, 2], "values": ["00" * 8, "0x"]}}), "files[1].lower-bounds.values[1]"),
    (one(**{"split-offsets": [4, "x"]}), "files[1].split-offsets[1]"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_broken_file_is_a_format_error_that_says_where(broken, message):
    with pytest.raises(FormatError) as caught:
        content_files_from_json([one(), broken], context(), "files")
    assert str(caught.value).startswith(message)


def test_more_files_than_allowed_are_a_limit_error():
    with pytest.raises(LimitError, match="more than 1 files"):
        content_files_from_json([one(), one()], context(limits=Limits(manifest_entries=1)))


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (manifest(), "its content type"),
        (data_file(location=None), "location is null"),
        (data_file(record_count=None), "record_count is null"),
        (data_file(partition_spec_id=None), "partition_spec_id is null"),
        (data_file(partition_spec_id=1), "no value of partition field 'name'"),
    ],
)
def test_an_entry_that_is_no_content_file_is_refused(row, rule):
    with pytest.raises(InputError, match=rule):
        content_files_to_json(table([data_file(), row]), context())


def test_a_partition_value_of_nan_is_refused_by_name():
    with pytest.raises(InputError, match=r"'price': nan .*JSON has no number NaN"):
        content_files_to_json(table([data_file(**mixed_partition(price=math.nan))]), context())


def test_an_unknown_transform_is_ignored_when_read_and_refused_when_written():
    part = PartitionField(source_id=3, field_id=1500, name="odd", transform="zorder[3]")
    known = replace(context(), specs={7: PartitionSpec(spec_id=7, fields=(part,))})

    read = content_files_from_json([one(**{"spec-id": 7, "partition": {"1500": [1]}})], known)

    assert [name for name in read.column_names if ":p" in name] == []
    with pytest.raises(UnsupportedError, match="odd"):
        content_files_to_json(read, known)


def test_a_partition_value_in_nanoseconds_keeps_them():
    part = PartitionField(source_id=3, field_id=1500, name="at", transform="identity")
    specs = {7: PartitionSpec(spec_id=7, fields=(part,))}
    known = replace(context(), specs=specs, partition_types={1500: TIMESTAMPTZ_NS})
    row = data_file(partition_spec_id=7, **partition(1500, 1510871468123456789))
    before = entries([row], {partition_key(1500): arrow_type(TIMESTAMPTZ_NS)})

    written = content_files_to_json(before, known)

    assert written[0]["partition"] == {"1500": "2017-11-16T22:31:08.123456789+00:00"}
    assert list(differences(before, content_files_from_json(written, known))) == HISTORY


GOOD = json.dumps(
    content_files_to_json(
        table([every_type(), data_dv(), equality_delete(1, key_metadata=b"k", split_offsets=[4])]), context()
    )
).encode()


@given(damaged_json(GOOD))
def test_damaged_files_are_read_or_refused(text):
    values = json.loads(text)
    with contextlib.suppress(FormatError):
        read = content_files_from_json(values, context())
        read.validate(full=True)
        assert read.num_rows == len(values)
