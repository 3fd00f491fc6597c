"""Delete files matched to data files, compared pair by pair with the rules of the specification."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.manifest.context import ManifestContext, manifest_context
from icefloe.deletes import matching
from icefloe.deletes.delete_index import Attached, DeleteOutcome, attach_deletes
from icefloe.errors import FormatError, LimitError, UnsupportedError
from icefloe.model.entries import ContentType, column_key, entries, partition_key
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import DOUBLE, LONG, STRING, Field
from support.delete_matching import PATH, applies, may_equal, may_name

SCHEMA = Schema(fields=(Field(1, "id", LONG), Field(2, "note", STRING), Field(3, "x", DOUBLE)))


def by(source_id: int, field_id: int, transform: str = "identity") -> PartitionField:
    return PartitionField(source_id=source_id, field_id=field_id, name=f"p{field_id}", transform=transform)


SPECS = (
    PartitionSpec(spec_id=0),
    PartitionSpec(spec_id=1, fields=(by(2, 1000),)),
    PartitionSpec(spec_id=2, fields=(by(2, 1000), by(3, 1001))),
    PartitionSpec(spec_id=3, fields=(by(2, 1002, "void"),)),
)
TYPES = {
    column_key(1): pa.int64(),
    column_key(2): pa.string(),
    partition_key(1000): pa.string(),
    partition_key(1001): pa.float64(),
    PATH: pa.string(),
}


def context(*specs: PartitionSpec) -> ManifestContext:
    return manifest_context(
        TableMetadata(
            format_version=3,
            table_uuid="00000000-0000-0000-0000-000000000000",
            location="memory://t",
            last_updated_ms=0,
            last_column_id=3,
            schemas=(SCHEMA,),
            specs=specs if len(specs) > 0 else SPECS,
        )
    )


def entry(kind: ContentType, location: str, sequence: int, spec: int = 0, **more: object) -> dict[str, object]:
    return {
        "content_type": int(kind),
        "location": location,
        "file_format": "parquet",
        "sequence_number": sequence,
        "partition_spec_id": spec,
        "record_count": 10,
        "file_size_in_bytes": 100,
        **{name.replace("__", ":"): value for name, value in more.items()},
    }


def data(location: str, sequence: int, spec: int = 0, **more: object) -> dict[str, object]:
    return entry(ContentType.DATA, location, sequence, spec, **more)


def position(location: str, sequence: int, spec: int = 0, **more: object) -> dict[str, object]:
    return entry(ContentType.POSITION_DELETES, location, sequence, spec, **more)


def equality(location: str, sequence: int, spec: int = 0, ids: Iterable[int] = (1,), **more: object):
    return entry(ContentType.EQUALITY_DELETES, location, sequence, spec, equality_ids=list(ids), **more)


def vector(target: str, sequence: int) -> dict[str, object]:
    return position(f"{target}.puffin", sequence, referenced_file=target, dv_offset=4, dv_size_in_bytes=40)


def table(rows: list[dict[str, object]]) -> pa.Table:
    found = entries(rows, TYPES)
    return found.append_column("manifest", pa.nulls(len(rows), pa.string()))


def attached(files: list[dict[str, object]], deletes: list[dict[str, object]]) -> Attached:
    return attach_deletes(table(files), table(deletes), context())


def pairs(found: Attached) -> set[tuple[str, str]]:
    names = found.files["location"].to_pylist()
    rows = found.data.select(["location", "deletes"]).to_pylist()
    return {(row["location"], names[number]) for row in rows for number in row["deletes"]}


# Few values, so that files meet often.
paths = st.sampled_from(["a", "b", "c", "d"])
sequences = st.integers(0, 3)
counts = st.sampled_from([None, 0, 4, 10])


@st.composite
def partitions(draw: st.DrawFn) -> dict[str, object]:
    spec = draw(st.integers(0, 3))
    found: dict[str, object] = {"spec": spec}
    if spec in (1, 2):
        note = draw(st.sampled_from([None, "", "u"]))
        found |= {"lower_bound__p1000": note, "null_value_count__p1000": 10 if note is None else 0}
    if spec == 2:
        x = draw(st.sampled_from([None, "NaN", 0.0, -0.0, 1.5]))
        found |= {
            "lower_bound__p1001": None if x == "NaN" else x,
            "null_value_count__p1001": 10 if x is None else 0,
            "nan_value_count__p1001": 10 if x == "NaN" else 0,
        }
    return found


@st.composite
def statistics(draw: st.DrawFn) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, values in (("1", st.integers(0, 5)), ("2", st.sampled_from(["", "k", "u"]))):
        low, high = sorted([draw(values), draw(values)])
        nulls = draw(counts)
        found |= {
            f"lower_bound__{key}": draw(st.sampled_from([None, low])),
            f"upper_bound__{key}": draw(st.sampled_from([None, high])),
            f"null_value_count__{key}": nulls,
            f"value_count__{key}": draw(st.sampled_from([None, 4, 10])),
        }
    return found


@st.composite
def data_files(draw: st.DrawFn) -> list[dict[str, object]]:
    chosen = draw(st.lists(paths, unique=True, max_size=4))
    return [data(path, draw(sequences), **draw(partitions()), **draw(statistics())) for path in chosen]


@st.composite
def delete_files(draw: st.DrawFn) -> list[dict[str, object]]:
    found = []
    for number in range(draw(st.integers(0, 6))):
        where = draw(partitions())
        if draw(st.booleans()):
            ids = draw(st.sampled_from([(1,), (2,), (1, 2)]))
            found.append(equality(f"e{number}", draw(sequences), ids=ids, **where, **draw(statistics())))
        else:
            ends = draw(st.lists(paths, min_size=2, max_size=2).map(sorted))
            bounds = {f"{m}__{PATH}": draw(st.sampled_from([None, e])) for m, e in zip(_ENDS, ends, strict=True)}
            named = draw(st.sampled_from([None, None, "a", "b"]))
            found.append(position(f"p{number}", draw(sequences), referenced_file=named, **where, **bounds))
    return found


_ENDS = ("lower_bound", "upper_bound")


@given(data_files(), delete_files(), st.sets(paths))
def test_pairs_are_those_of_the_specification(files, deletes, with_vector):
    specs = {spec.spec_id: spec for spec in SPECS}
    vectors = [vector(f["location"], f["sequence_number"]) for f in files if f["location"] in with_vector]
    expected = set()
    for file in files:
        for delete in deletes:
            if not applies(file, delete, specs):
                continue
            if delete["content_type"] == ContentType.EQUALITY_DELETES:
                needed = may_equal(file, delete)
            else:
                needed = may_name(delete, file["location"]) and file["location"] not in with_vector
            if needed:
                expected.add((file["location"], delete["location"]))
    found = attached(files, [*deletes, *vectors])
    assert pairs(found) == expected
    assert {name for _, name in expected} == set(found.files["location"].to_pylist())
    has_vector = {row["location"] for row in found.data.to_pylist() if row["dv_location"] is not None}
    assert has_vector == {v["referenced_file"] for v in vectors}
    kept = [
        f["location"]
        for f, outcome in zip([*deletes, *vectors], found.outcomes.to_pylist(), strict=True)
        if outcome == 0
    ]
    assert set(kept) == {name for _, name in expected} | {v["location"] for v in vectors}


@given(data_files(), delete_files())
def test_small_batches_give_the_same_pairs(files, deletes):
    whole = pairs(attached(files, deletes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "BATCH", 1)
        assert pairs(attached(files, deletes)) == whole


def test_positions_apply_to_files_of_the_same_commit_and_equality_only_to_older_ones():
    found = attached([data("old", 1), data("same", 2), data("new", 3)], [position("p", 2), equality("e", 2)])
    assert pairs(found) == {("old", "p"), ("same", "p"), ("old", "e")}


def test_position_deletes_come_first_and_older_ones_before_newer_ones():
    found = attached([data("a", 1)], [equality("e5", 5), position("p4", 4), equality("e2", 2), position("p3", 3)])
    assert found.files["location"].to_pylist() == ["p3", "p4", "e2", "e5"]
    assert found.data["deletes"].to_pylist() == [[0, 1, 2, 3]]


def test_null_and_nan_partitions_are_equal_to_themselves_and_not_to_each_other():
    null = {"lower_bound__p1000": "u", "null_value_count__p1001": 10}
    nan = {"lower_bound__p1000": "u", "nan_value_count__p1001": 10}
    found = attached([data("null", 1, 2, **null), data("nan", 1, 2, **nan)], [equality("e", 2, 2, **nan)])
    assert pairs(found) == {("nan", "e")}


def test_the_same_value_in_another_spec_is_another_partition():
    found = attached([data("a", 1, 2, lower_bound__p1000="u")], [equality("e", 2, 1, lower_bound__p1000="u")])
    assert pairs(found) == set()


@pytest.mark.parametrize("spec", [0, 3])
def test_equality_deletes_of_an_unpartitioned_spec_apply_everywhere(spec):
    files = [data("a", 1, 1, lower_bound__p1000="u"), data("b", 1, 0), data("c", 1, 3)]
    assert pairs(attached(files, [equality("e", 2, spec)])) == {("a", "e"), ("b", "e"), ("c", "e")}


def test_position_deletes_of_an_unpartitioned_spec_stay_in_it():
    files = [data("a", 1, 1, lower_bound__p1000="u"), data("b", 1, 0)]
    assert pairs(attached(files, [position("p", 2, 0)])) == {("b", "p")}


def test_a_delete_file_says_why_it_was_left_out():
    ids = {"lower_bound__1": 5, "upper_bound__1": 9, "null_value_count__1": 0, "value_count__1": 10}
    others = {**ids, "lower_bound__1": 1, "upper_bound__1": 2}
    deletes = [equality("near", 2, **ids), equality("apart", 2, **others), equality("early", 1, **ids)]
    found = attached([data("a", 1, **ids)], deletes)
    assert found.outcomes.to_pylist() == [DeleteOutcome.APPLIES, DeleteOutcome.NO_ROW, DeleteOutcome.NO_FILE]


def test_floats_are_never_told_apart_by_bounds_because_of_nan():
    ids = {"null_value_count__3": 0, "value_count__3": 10}
    types = {**TYPES, column_key(3): pa.float64()}
    names = {"lower_bound:3": 1.0, "upper_bound:3": 2.0}
    file = entries([{**data("a", 1, **ids), **names}], types)
    delete = entries([{**equality("e", 2, ids=(3,), **ids), "lower_bound:3": 5.0, "upper_bound:3": 6.0}], types)
    both = [t.append_column("manifest", pa.nulls(1, pa.string())) for t in (file, delete)]
    assert attach_deletes(both[0], both[1], context()).data["deletes"].to_pylist() == [[0]]


def test_bounds_measured_before_a_column_was_promoted_are_compared():
    counted = {"null_value_count__1": 0, "value_count__1": 10}
    rows = [data("a", 1, lower_bound__1=1, upper_bound__1=2, **counted)]
    narrow = entries(rows, {**TYPES, column_key(1): pa.int32()}).append_column("manifest", pa.nulls(1, pa.string()))
    deletes = [equality("far", 2, lower_bound__1=5, upper_bound__1=2**40, **counted), equality("near", 2)]
    assert pairs(attach_deletes(narrow, table(deletes), context())) == {("a", "near")}


def test_only_the_delete_columns_are_compared():
    bounds = {"lower_bound__1": 1, "upper_bound__1": 2, "null_value_count__1": 0, "value_count__1": 10}
    far = {"lower_bound__1": 8, "upper_bound__1": 9, "null_value_count__1": 0, "value_count__1": 10}
    deletes = [equality("key", 2, ids=(1,), **far), equality("other", 2, ids=(2,), **far)]
    assert pairs(attached([data("a", 1, **bounds)], deletes)) == {("a", "other")}


def test_fewer_values_than_rows_may_be_nulls_of_a_parent():
    bounds = {"lower_bound__1": 1, "upper_bound__1": 2, "null_value_count__1": 0}
    nulls = {"lower_bound__1": 8, "upper_bound__1": 9, "null_value_count__1": 3, "value_count__1": 10}
    files = [data("whole", 1, value_count__1=10, **bounds), data("part", 1, value_count__1=4, **bounds)]
    assert pairs(attached(files, [equality("e", 2, **nulls)])) == {("part", "e")}


def test_delete_files_apply_to_files_whose_counts_contradict_each_other():
    """A file with -1 values, or more nulls than values, was taken for one of nulls, and its rows came back."""
    ids = {"lower_bound__1": 1, "upper_bound__1": 9, "null_value_count__1": 0, "value_count__1": 10}
    nonsense = [(-1, 0), (-1, -1), (3, 5), (10, 11), (20, 20), (3, 3)]
    files = [
        data(f"f{n}", 1, lower_bound__1=2, upper_bound__1=3, value_count__1=values, null_value_count__1=nulls)
        for n, (values, nulls) in enumerate(nonsense)
    ]
    assert pairs(attached(files, [equality("e", 2, **ids)])) == {(f"f{n}", "e") for n in range(len(nonsense))}


def test_two_vectors_for_one_file_are_refused():
    with pytest.raises(FormatError, match="two live deletion vectors"):
        attached([data("a", 1)], [vector("a", 1), vector("a", 2)])


def test_a_vector_older_than_its_file_is_refused():
    with pytest.raises(FormatError, match="newer than its deletion vector"):
        attached([data("a", 2)], [vector("a", 1)])


def test_equality_deletes_of_partitions_that_cannot_be_read_are_refused():
    strange = PartitionSpec(spec_id=0, fields=(by(1, 1000, "zorder[8]"),))
    with pytest.raises(UnsupportedError, match="zorder"):
        attach_deletes(table([data("a", 1)]), table([equality("e", 2)]), context(strange))


def test_more_pairs_than_a_plan_may_hold_are_refused(monkeypatch):
    monkeypatch.setattr(matching, "PAIRS_MAX", 3)
    with pytest.raises(LimitError, match="compact"):
        attached([data("a", 1), data("b", 1)], [equality("e", 2), equality("f", 2)])


def test_without_any_files_there_is_nothing_to_attach():
    found = attached([], [equality("e", 2), vector("gone", 3)])
    assert (found.data.num_rows, found.files.num_rows) == (0, 0)
    assert found.outcomes.to_pylist() == [DeleteOutcome.NO_FILE, DeleteOutcome.NO_FILE]
    assert attached([data("a", 1)], []).data["deletes"].to_pylist() == [[]]
