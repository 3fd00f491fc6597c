"""Which fields each kind of row must have, may have and must not have, field by field (V4 proposal)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.codecs.manifest.entry_checks import check_entries
from icefloe.codecs.manifest.parquet import decode_parquet_manifest, encode_parquet_manifest
from icefloe.errors import FormatError, InputError
from icefloe.model.entries import MANIFEST_COUNTS, ContentType, Status, columns_of
from support.manifests.random_entries import Row, data_dv, equality_delete, manifest, manifest_dv
from support.manifests.sample import LOCATION, context, data_file, table

V4 = context(4)
COUNTS = tuple(field.name for field in MANIFEST_COUNTS)
POINTER = {"location": f"{LOCATION}/metadata/v.puffin", "file_size_in_bytes": 100, "dv_inline_content": None}
ROWS: dict[str, Row] = {
    "0 data": data_file(0),
    "1 vector": data_dv(0),
    "2 equality delete": equality_delete(0),
    "3 data manifest": manifest(0),
    "4 delete manifest": manifest(0, delete=True),
    "5 inline manifest vector": manifest_dv(0),
    "5 manifest vector in a file": manifest_dv(0) | POINTER | {"dv_offset": 4, "dv_size_in_bytes": 42},
}
VALUES: dict[str, object] = {
    "location": f"{LOCATION}/x",
    "file_size_in_bytes": 100,
    "dv_offset": 4,
    "dv_size_in_bytes": 42,
    "dv_inline_content": b"x" * 20,
    "referenced_file": f"{LOCATION}/metadata/m0.parquet",
    "equality_ids": [1],
    "sort_order_id": 1,
    "split_offsets": [4],
    "first_row_id": 7,
    "key_metadata": b"key",
    **dict.fromkeys(COUNTS, 1),
}
# Per kind in the order of ROWS: R must be there, O may be, - must not.
MATRIX = {
    "location": "R R R R R - R",
    "file_size_in_bytes": "R R R R R - R",
    "dv_offset": "- R - - - - R",
    "dv_size_in_bytes": "- R - - - - R",
    "dv_inline_content": "- - - - - R -",
    "referenced_file": "- R - - O R R",
    "equality_ids": "- - R - - - -",
    "sort_order_id": "O - - - - - -",
    "split_offsets": "O - O - - - -",
    "first_row_id": "O - - O - - -",
    "key_metadata": "O O O O O O O",
    **dict.fromkeys(COUNTS, "- - - R R - -"),
}
CELLS = [(kind, name, rule) for name, line in MATRIX.items() for kind, rule in zip(ROWS, line.split(), strict=True)]


def check(*rows: Row, stats: pa.Array | None = None) -> None:
    check_entries(columns_of(table(list(rows))), content="root", where="here", error=FormatError, stats=stats)


def good(row: Row) -> None:
    check(data_file(8), row)


def bad(row: Row, rule: str = "") -> None:
    with pytest.raises(FormatError, match=rf"here: row 1: .*{rule}"):
        check(data_file(8), row)


@pytest.mark.parametrize("kind", ROWS)
def test_every_kind_of_row_is_accepted(kind: str) -> None:
    good(ROWS[kind])


@pytest.mark.parametrize(("kind", "name", "rule"), CELLS, ids=[f"{kind}: {name} {rule}" for kind, name, rule in CELLS])
def test_a_field_must_or_may_or_must_not_be_there(kind: str, name: str, rule: str) -> None:
    absent, present = (
        ROWS[kind] | {name: None},
        {name: VALUES[name]} | {k: v for k, v in ROWS[kind].items() if v is not None},
    )
    for row, allowed in ((absent, rule in "O-"), (present, rule in "RO")):
        if allowed:
            good(row)
        else:
            bad(row)


def test_an_inline_manifest_vector_may_have_a_location_with_a_size() -> None:
    """Each alone is refused, by the matrix."""
    good(manifest_dv(0) | {"location": VALUES["location"], "file_size_in_bytes": 7})


@pytest.mark.parametrize("offsets", [[], [4], [4, 4], [4, 900], None])
def test_split_offsets_that_ascend_are_accepted(offsets: list[int] | None) -> None:
    good(data_file(1, split_offsets=offsets))


@pytest.mark.parametrize("offsets", [[900, 4], [4, 900, 899], [4, 9, 9, 8]])
def test_split_offsets_that_do_not_ascend_are_refused_with_the_file_and_what_to_do(offsets: list[int]) -> None:
    bad(data_file(1, split_offsets=offsets), r"split_offsets of .*00001\.parquet do not ascend: .*must sort them")


FORMATS = {
    "parquet": "0 2 3 4",
    "avro": "0 2 3 4",
    "orc": "0 2",
    "puffin": "1 5",
    "PARQUET": "",
    "": "",
    "metadata": "",
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(("name", "kinds"), FORMATS.items())
def test_each_kind_has_its_file_formats(kind: str, name: str, kinds: str) -> None:
    row = ROWS[kind] | {"file_format": name}
    if kind.split()[0] in kinds.split():
        good(row)
    else:
        bad(row, "file_format")


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("status", [-1, 3, 4, 7])
def test_a_status_beyond_deleted_is_refused(kind: str, status: int) -> None:
    bad(ROWS[kind] | {"status": status}, "status is not")


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("status", [Status.EXISTING, Status.DELETED])
@pytest.mark.parametrize("name", ["sequence_number", "file_sequence_number"])
def test_only_added_rows_inherit_sequence_numbers(kind: str, status: Status, name: str) -> None:
    bad(ROWS[kind] | {"status": int(status), name: None}, "sequence number")
    good(ROWS[kind] | {"sequence_number": None, "file_sequence_number": None})


def test_statistics_are_for_all_rows_but_manifest_vectors() -> None:
    stats = pa.array([{"a": 1}, {"a": 1}])
    for kind, row in ROWS.items():
        if kind.startswith("5"):
            with pytest.raises(FormatError, match=r"here: row 1: .*must not have content_stats"):
                check(data_file(8), row, stats=stats)
            check(data_file(8), row, stats=pa.array([{"a": 1}, None]))
        else:
            check(data_file(8), row, stats=stats)


def test_the_sort_order_of_equality_deletes_is_not_written() -> None:
    rows = table([equality_delete(1, sort_order_id=3)])
    data = encode_parquet_manifest(rows, V4, content="delete")
    assert decode_parquet_manifest(data, V4, where="m", content=("delete",))["sort_order_id"].to_pylist() == [None]
    with pytest.raises(InputError, match="sort_order_id is for data files only"):
        encode_parquet_manifest(table([data_dv(1, sort_order_id=3)]), V4, content="delete")
    kept = encode_parquet_manifest(table([data_file(1, sort_order_id=3)]), V4, content="data")
    assert decode_parquet_manifest(kept, V4, where="m", content=("data",))["sort_order_id"].to_pylist() == [3]


def test_the_matrix_names_every_kind() -> None:
    assert {int(kind.split()[0]) for kind in ROWS} == {int(kind) for kind in ContentType}
