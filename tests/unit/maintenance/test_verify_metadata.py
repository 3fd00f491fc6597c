"""The check of tables finds nothing in sound ones, and every rule finds the table that was made to break it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap64

from icefloe.codecs.manifest.manifests import encode_leaf, encode_root
from icefloe.codecs.puffin.deletion_vector import encode_dv
from icefloe.codecs.puffin.puffin_file import deletion_vector_blob, encode_puffin
from icefloe.commit.base import Base
from icefloe.commit.operations.append import Append
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.io.memory import MemoryFileIO
from icefloe.maintenance.verify.findings import SHOWN, Finding, Rule, broken
from icefloe.model.entries import MANIFESTS, ContentType, Measure, Status, column_key, entries, put, stat
from icefloe.model.metadata.snapshots import Ref, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.testing.check import check_table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import leaves_of, read_root
from support.crashes import World as RowsWorld
from support.crashes import start_world
from support.entry_tables import World, data, equality_deletes, new_world, rows, vector
from support.metadata_documents import metadata_json
from support.metadata_tree import stored_leaf
from support.tables import VERSIONS

pytestmark = [pytest.mark.slow, pytest.mark.broken_tables]

SMALL = {"commit.root.max-data-files": "2", "commit.root.max-dvs": "2"}
LARGE = dict.fromkeys(SMALL, "1000")


def world() -> World:
    """One leaf of three files, of which one has left, two files in the root, two vectors and an equality delete."""
    made = new_world(4, **SMALL)
    made.commit(Append(added=rows(data("a", low=0, high=3), data("b", low=4, high=6), data("c", low=7, high=9))))
    made.commit(SetProperties(updates=LARGE))  # so that nothing moves by itself
    made.commit(Append(added=rows(data("d"), data("e"))))
    made.commit(RemoveFiles(locations=(data("b")["location"],)))
    deletes = rows(vector("v1", "a"), vector("v2", "d"), equality_deletes("q"))
    made.commit(RowDelta(changes=FileChanges(added=deletes, revectored=made.tasks("a", "d")), read=made.head))
    return made


def findings(made: World, **changes: object) -> list[Finding]:
    base = made.base()
    return check_table((base.store, replace(base.metadata, **changes)), data=False)


def found(problems: Iterable[Finding]) -> set[Rule]:
    return {problem.rule for problem in problems}


@dataclass
class Rewritten:
    """A manifest whose rows can be changed behind the table's back."""

    made: World
    base: Base
    location: str
    content: ContentType | None  # none for a root
    rows: pa.Table

    def write(self, changed: pa.Table) -> None:
        context, snapshot = self.base.store.context, self.base.metadata.current_snapshot
        if self.content is None:
            encoded = encode_root(changed, context, snapshot_id=snapshot.snapshot_id, parent_id=None, sequence_number=1)
        else:
            encoded = encode_leaf(
                changed,
                context,
                content=self.content,
                spec_id=0,
            )
        storage(self.made).replace(self.location, encoded)

    def set(self, name: str, value: object, *, row: int) -> None:
        values = self.rows[name].to_pylist()
        values[row] = value
        self.write(put(self.rows, name, pa.array(values, self.rows.schema.field(name).type)))


def storage(made: World) -> MemoryFileIO:
    inner = made.io.inner
    assert isinstance(inner, MemoryFileIO)
    return inner


def root_of(made: World) -> Rewritten:
    base = made.base()
    snapshot = base.metadata.current_snapshot
    return Rewritten(made, base, snapshot.root, None, read_root(base.store, snapshot).entries)


def leaf_of(made: World, *, content: ContentType = ContentType.DATA_MANIFEST) -> Rewritten:
    base = made.base()
    root = read_root(base.store, base.metadata.current_snapshot)
    (leaf,) = [leaf for leaf in leaves_of(root.rows(*MANIFESTS)) if leaf.content is content]
    return Rewritten(
        made,
        base,
        leaf.location,
        content,
        stored_leaf(base.store, leaf.location, content=content),
    )


def row_of(rows_: pa.Table, kind: ContentType, name: str = "") -> int:
    named = pc.fill_null(pc.match_substring(rows_["location"], name), name == "")
    return int(pc.index(pc.and_(pc.equal(rows_["content_type"], int(kind)), named), True).as_py())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sound_table_has_no_findings(version):
    assert check_table(start_world(version).table()) == []


def test_a_table_of_entries_without_files_has_no_findings_in_its_metadata():
    made = world()
    assert findings(made) == []
    kinds = set(root_of(made).rows["content_type"].to_pylist())
    assert kinds >= {int(t) for t in (ContentType.DATA, ContentType.DATA_MANIFEST, ContentType.MANIFEST_DV)}


def test_data_files_that_are_named_and_absent_are_found_where_they_are_named():
    made = world()
    base = made.base()
    problems = check_table((base.store, base.metadata))
    assert found(problems) == {Rule.FILES, Rule.DELETION_VECTORS}
    assert any(p.row == 0 and "data/a.parquet is missing" in p.message for p in problems)


# -- rows of the root


@dataclass(frozen=True)
class Broken:
    """A column of a root row that says something wrong."""

    kind: ContentType
    column: str
    value: object
    rules: frozenset[Rule]

    def __str__(self) -> str:
        return f"{self.kind.name} {self.column}={self.value}"


def root_case(kind: ContentType, column: str, value: object, *rules: Rule) -> Broken:
    return Broken(kind, column, value, frozenset(rules))


DATA, LEAVES, HIDING = ContentType.DATA, ContentType.DATA_MANIFEST, ContentType.MANIFEST_DV
ROOTS = [
    root_case(LEAVES, "added_files_count", 2, Rule.MANIFEST_COUNTS),
    root_case(LEAVES, "existing_files_count", 1, Rule.MANIFEST_COUNTS),
    root_case(LEAVES, "deleted_files_count", 1, Rule.MANIFEST_COUNTS),
    root_case(LEAVES, "added_rows_count", 31, Rule.MANIFEST_COUNTS),
    root_case(LEAVES, "min_sequence_number", 0, Rule.MANIFEST_COUNTS),
    root_case(LEAVES, "record_count", 4, Rule.MANIFEST_COUNTS),
    root_case(LEAVES, "lower_bound:1", 1, Rule.MANIFEST_STATISTICS),
    root_case(LEAVES, "upper_bound:1", 8, Rule.MANIFEST_STATISTICS),
    root_case(LEAVES, "value_count:1", 29, Rule.MANIFEST_STATISTICS),
    root_case(LEAVES, "null_value_count:1", 1, Rule.MANIFEST_STATISTICS),
    root_case(DATA, "status", int(Status.ADDED), Rule.STATUS, Rule.SEQUENCE_NUMBERS),
    root_case(DATA, "sequence_number", 3, Rule.SEQUENCE_NUMBERS, Rule.CARRIED),
    root_case(DATA, "first_row_id", 31, Rule.ROW_IDS, Rule.CARRIED),
    root_case(DATA, "first_row_id", 5, Rule.ROW_IDS, Rule.CARRIED),
    root_case(DATA, "record_count", 11, Rule.ROW_IDS, Rule.CARRIED, Rule.SUMMARY),
    root_case(DATA, "status", int(Status.DELETED), *(Rule.STATUS, Rule.SUMMARY, Rule.DELETION_VECTORS)),
    root_case(HIDING, "status", int(Status.DELETED), Rule.STATUS, Rule.SUMMARY),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", ROOTS, ids=str)
def test_a_wrong_row_of_a_root_is_found(case):
    made = world()
    root = root_of(made)
    place = row_of(root.rows, case.kind)
    root.set(case.column, case.value, row=place)
    problems = findings(made)
    assert found(problems) - {Rule.CHANGES} == case.rules
    assert any(problem.row == place or case.column == "status" for problem in problems)
    assert all(problem.location == root.location for problem in problems)


def test_a_row_that_is_missing_or_comes_twice_is_found():
    made = world()
    root = root_of(made)
    place = row_of(root.rows, DATA, "/e.")
    root.write(root.rows.filter(pa.array(np.arange(root.rows.num_rows) != place)))
    assert found(findings(made)) == {Rule.CHANGES, Rule.SUMMARY}
    root.set("location", data("a")["location"], row=place)
    assert found(findings(made)) == {Rule.UNIQUE, Rule.CHANGES, Rule.CARRIED}


def test_a_first_snapshot_with_deleted_rows_is_found():
    made = new_world(4)
    made.commit(Append(added=rows(data("a"), data("b"))))
    root_of(made).set("status", int(Status.DELETED), row=0)
    assert Rule.STATUS in found(findings(made))


def test_a_vector_that_hides_a_row_that_had_left_anyway_is_found():
    made = new_world(3, **SMALL)
    made.commit(Append(added=rows(data("a"), data("b"), data("c"))))
    made.commit(RemoveFiles(locations=(data("a")["location"],)))
    base = made.base()
    (leaf,) = leaves_of(read_root(base.store, base.metadata.current_snapshot).entries)
    stored = stored_leaf(base.store, leaf.location)
    assert stored["status"].to_pylist()[0] == int(Status.DELETED)
    made.table().upgrade(4)
    made.commit(Append(added=rows(data("d"))))
    root = root_of(made)
    hiding = hiding_row(leaf.location, BitMap64([0]), made.head)
    root.write(pa.concat_tables([root.rows, hiding], promote_options="permissive"))
    assert Rule.MANIFEST_VECTORS in found(findings(made))


def hiding_row(leaf: str, positions: BitMap64, head, spec_id: int = 0) -> pa.Table:
    row = {
        "content_type": int(HIDING),
        "file_format": "puffin",
        "status": int(Status.ADDED),
        "snapshot_id": head.snapshot_id,
        "sequence_number": head.sequence_number,
        "file_sequence_number": head.sequence_number,
        "dv_inline_content": encode_dv(positions),
        "partition_spec_id": spec_id,
        "record_count": len(positions),
        "referenced_file": leaf,
    }
    return entries([row])


# -- rows of leaves


LEAF_CASES = [
    ("record_count", 9, {Rule.MANIFEST_COUNTS}),
    ("snapshot_id", 77, {Rule.STATUS}),
    ("sequence_number", 9, {Rule.SEQUENCE_NUMBERS}),
    ("lower_bound:1", -1, {Rule.MANIFEST_STATISTICS}),
    ("value_count:1", None, {Rule.MANIFEST_STATISTICS}),
]


@pytest.mark.parametrize(("column", "value", "rules"), LEAF_CASES, ids=str)
def test_a_wrong_row_of_a_leaf_is_found(column, value, rules):
    made = world()
    leaf_of(made).set(column, value, row=0)
    assert rules <= found(findings(made))


def test_a_leaf_that_mixes_old_rows_and_new_ones_is_found():
    made = new_world(4, **SMALL)
    made.commit(Append(added=rows(data("a"), data("b"), data("c"))))
    leaf = leaf_of(made)
    older = {"status": [0, 1, 1], "snapshot_id": [5, None, None], "sequence_number": [0, None, None]}
    changed = leaf.rows
    for name, values in {**older, "file_sequence_number": [0, None, None]}.items():
        changed = put(changed, name, pa.array(values, changed.schema.field(name).type))
    leaf.write(changed)
    mixed = [problem for problem in findings(made) if problem.rule is Rule.STATUS]
    assert [problem.location for problem in mixed] == [leaf.location]


def test_a_leaf_that_moves_old_rows_and_is_called_added_is_found():
    made = new_world(4, **SMALL)
    for name in "abcde":
        made.commit(Append(added=rows(data(name))))
    assert made.table().rewrite_manifests().execute().snapshots == 1
    root = root_of(made)
    place = row_of(root.rows, LEAVES)
    assert findings(made) == []
    root.set("status", int(Status.ADDED), row=place)
    assert [(p.rule, p.row) for p in findings(made)] == [(Rule.STATUS, place)]


def test_a_leaf_that_says_two_specs_or_claims_tight_bounds_is_found():
    made = world()
    root = root_of(made)
    place = row_of(root.rows, LEAVES)
    tight = pa.array([True if n == place else None for n in range(root.rows.num_rows)])
    root.write(root.rows.append_column(stat(Measure.TIGHT, column_key(1)), tight))
    assert [(p.rule, p.row) for p in findings(made)] == [(Rule.MANIFEST_STATISTICS, place)]


def test_manifests_that_are_missing_or_damaged_are_found():
    made = world()
    leaf, root = leaf_of(made), root_of(made)
    io = storage(made)
    whole = io.read(leaf.location)
    io.replace(leaf.location, whole[: len(whole) // 2])
    assert {(p.rule, p.location) for p in findings(made)} >= {(Rule.READABLE, leaf.location)}
    io.delete([leaf.location])
    assert Rule.FILES in found(findings(made))
    io.replace(leaf.location, whole)
    io.replace(root.location, b"PAR1 and nothing else")
    assert {(p.rule, p.location) for p in findings(made)} >= {(Rule.READABLE, root.location)}


# -- deletes


VECTOR = ContentType.POSITION_DELETES
VECTORS = [
    ("referenced_file", data("nobody")["location"], {Rule.DELETION_VECTORS}),
    ("record_count", 11, {Rule.DELETION_VECTORS, Rule.SUMMARY}),
    ("record_count", 0, {Rule.DELETION_VECTORS, Rule.SUMMARY}),
    ("lower_bound:p1000", "Rome", {Rule.DELETION_VECTORS}),
    ("sequence_number", 0, {Rule.DELETION_VECTORS}),
]


@pytest.mark.parametrize(("column", "value", "rules"), VECTORS, ids=[f"{name} {value}" for name, value, _ in VECTORS])
def test_a_vector_that_does_not_fit_its_data_file_is_found(column, value, rules):
    made = world()
    root = root_of(made)
    place = row_of(root.rows, VECTOR, "v1")
    root.set(column, value, row=place)
    problems = findings(made)
    assert found(problems) == rules
    assert any(problem.row == place for problem in problems)


def test_equality_deletes_by_no_column_are_found():
    made = world()
    root = root_of(made)
    root.set("equality_ids", [99], row=row_of(root.rows, ContentType.EQUALITY_DELETES))
    assert found(findings(made)) == {Rule.EQUALITY_DELETES}


def test_an_affinity_to_no_data_leaf_or_to_the_wrong_one_is_found():
    made = new_world(4, **SMALL)
    made.commit(Append(added=rows(data("a"), data("b"), data("c"))))
    made.commit(Append(added=rows(data("d"), data("e"), data("f"))))
    deletes = rows(*(vector(f"v{name}", name) for name in "abc"))
    made.commit(RowDelta(changes=FileChanges(added=deletes, revectored=made.tasks("a", "b", "c")), read=made.head))
    root = root_of(made)
    place = row_of(root.rows, ContentType.DELETE_MANIFEST)
    leaves = root.rows.filter(pc.equal(root.rows["content_type"], int(LEAVES)))["location"].to_pylist()
    assert findings(made) == []
    leaf = leaf_of(made, content=ContentType.DELETE_MANIFEST)
    leaf.set("referenced_file", data("b")["location"], row=0)
    assert found(findings(made)) == {Rule.DELETION_VECTORS, Rule.FILES}  # two of one file; the length is another
    leaf.write(leaf.rows)
    root.set("referenced_file", leaves[1], row=place)
    assert found(findings(made)) == {Rule.AFFINITY}
    root.set("referenced_file", leaves[0], row=place)
    assert findings(made) == []


@pytest.fixture
def real() -> RowsWorld:
    """A table with real files and a deletion vector."""
    copy = start_world(4).copy()
    copy.table().delete("id = 4")
    return copy


def vectors_of(real: RowsWorld) -> list[dict]:
    tasks = real.table().scan().plan().tasks
    return tasks.filter(pc.is_valid(tasks["dv_location"])).to_pylist()


def test_a_vector_with_wrong_positions_cardinality_or_target_is_found(real):
    task = vectors_of(real)[0]
    location, target = task["dv_location"], task["location"]
    assert check_table(real.table()) == []
    one, two = BitMap64([0]), BitMap64([0, 1])
    cases = {"past the": (BitMap64([99]), target), "the deletion vector says": (two, target), "is for": (one, "x")}
    for message, (positions, name) in cases.items():
        blob = deletion_vector_blob(encode_dv(positions), referenced_file=name, cardinality=1)
        real.io.replace(location, encode_puffin([blob], "test")[0])
        problems = [p for p in check_table(real.table()) if p.rule is Rule.DELETION_VECTORS]
        assert any(message in problem.message for problem in problems), message


def test_a_file_that_is_missing_or_has_another_length_is_found_once(real):
    locations = real.table().scan().plan().tasks["location"].to_pylist()
    real.io.replace(locations[0], b"cut")
    real.io.delete([locations[1]])
    problems = check_table(real.table())
    assert found(problems) == {Rule.FILES}
    assert sorted(problem.message.split(" ", 1)[1] for problem in problems)[-1] == "is missing"
    assert len(problems) == 2


@pytest.mark.parametrize("counts", [(-1, 0), (3, 5), (10, 11)])
def test_counts_that_contradict_each_other_are_reported(counts):
    made = new_world(4)
    wrong = data("a") | {"value_count:1": counts[0], "null_value_count:1": counts[1]}
    made.commit(Append(added=rows(wrong, data("b"))))
    (problem,) = findings(made)
    assert (problem.rule, problem.severity, problem.location) == (Rule.VALUE_COUNTS, "warning", wrong["location"])
    assert "the counts of column 1 contradict each other, in 1 files" in problem.message


# -- what metadata says by itself


def edit(**changes: object) -> Callable[[TableMetadata], dict[str, object]]:
    return lambda metadata: changes


def with_snapshot(**changes: object) -> Callable[[TableMetadata], dict[str, object]]:
    """The last snapshot, changed."""

    def change(metadata: TableMetadata) -> dict[str, object]:
        *others, last = metadata.snapshots
        return {"snapshots": Snapshots((*others, replace(last, **changes)))}

    return change


def log_backwards(metadata: TableMetadata) -> dict[str, object]:
    times = [msgspec.structs.replace(e, timestamp_ms=10**6 - n * 10**5) for n, e in enumerate(metadata.snapshot_log)]
    return {"snapshot_log": tuple(times)}


METADATA = [
    (edit(next_row_id=49), {Rule.ROW_IDS}),
    (edit(last_sequence_number=3), {Rule.HISTORY}),
    (edit(last_updated_ms=0), {Rule.HISTORY}),
    (edit(current_snapshot_id=5), {Rule.HISTORY}),
    (edit(refs={"main": Ref(snapshot_id=5)}), {Rule.HISTORY}),
    (edit(snapshot_log=()), set()),
    (log_backwards, {Rule.HISTORY}),
    (with_snapshot(sequence_number=1), {Rule.HISTORY, Rule.SEQUENCE_NUMBERS}),
    (with_snapshot(timestamp_ms=0), {Rule.HISTORY}),
    (with_snapshot(first_row_id=0, added_rows=50), {Rule.ROW_IDS}),
    (with_snapshot(schema_id=9), {Rule.HISTORY}),
    (with_snapshot(summary={"operation": "append", "total-records": "7"}), {Rule.SUMMARY}),
    (with_snapshot(summary={"operation": "append", "added-delete-files": "7"}), {Rule.SUMMARY}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "rules"), METADATA, ids=range(len(METADATA)))
def test_wrong_metadata_is_found(change, rules):
    made = world()
    assert found(findings(made, **change(made.metadata))) == rules


def test_a_snapshot_without_its_parent_is_no_finding():
    made = world()
    *_, last = made.metadata.snapshots
    log = made.metadata.snapshot_log[-1:]
    assert findings(made, snapshots=Snapshots((last,)), snapshot_log=log) == []


def test_locations_under_the_table_that_are_not_relative_are_found():
    made = world()
    root = root_of(made)
    elsewhere = replace(root.base.store.context, location="memory://elsewhere/t")
    snapshot = root.base.metadata.current_snapshot
    encoded = encode_root(root.rows, elsewhere, snapshot_id=snapshot.snapshot_id, parent_id=None, sequence_number=1)
    storage(made).replace(root.location, encoded)
    assert found(findings(made)) == {Rule.LOCATIONS}


def test_a_metadata_file_that_names_its_roots_otherwise_is_found():
    copy = start_world(4).copy()
    pointer = copy.table().metadata_location
    text = json.dumps(metadata_json(copy.io.read(pointer)), separators=(",", ":"))
    assert '"root-manifest":"metadata/' in text
    copy.io.replace(pointer, text.replace('"root-manifest":"', '"root-manifest":"memory://wh/t/').encode())
    assert found(check_table(copy.table())) == {Rule.LOCATIONS}
    older = start_world(2).copy()
    pointer = older.table().metadata_location
    text = older.io.read(pointer).decode()
    older.io.replace(pointer, text.replace("memory://wh/t/metadata/snap", "metadata/snap").encode())
    assert Rule.LOCATIONS in found(check_table(older.table()))


# -- findings


def test_many_rows_that_break_a_rule_are_told_in_a_few_findings():
    told = list(broken(Rule.UNIQUE, "x", pa.array([True, None] * 50), "twice"))
    assert [finding.row for finding in told] == [*range(0, 2 * SHOWN, 2), None]
    assert "30 more rows" in told[-1].message
