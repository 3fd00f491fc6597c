"""The valid tables of the kit: every worked example of the proposal, and what else writers do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa

from editing import (
    ADDED,
    DATA,
    DATA_MANIFEST,
    DELETED,
    EXISTING,
    MANIFEST_DV,
    Files,
    Row,
    blob,
    head,
    inline,
    last_snapshot_only,
)
from stage import KEPT, TO_LEAVES, TO_ROOT, Stage

Build = Callable[[str], Mapping[str, bytes]]


@dataclass(frozen=True, kw_only=True)
class ValidCase:
    """A table that readers must read; ``findings`` are the rules that its writer broke all the same."""

    name: str
    section: str
    text: str
    build: Build
    findings: tuple[str, ...] = ()


CASES: list[ValidCase] = []


def case(section: str, text: str, *findings: str) -> Callable[[Build], Build]:
    """Add a case to the kit; its name is that of the function."""

    def add(build: Build) -> Build:
        name = build.__name__.replace("_", "-")
        CASES.append(ValidCase(name=name, section=section, text=text, build=build, findings=findings))
        return build

    return add


EXAMPLES, PROCEDURE = "Examples", "Commit Procedure"
MAINTENANCE, TREE, STRUCTURE = "Metadata Tree Maintenance", "Root Manifests", "Proposed Manifest Structure"
DETECTION, UPGRADE, PARTITIONS = "(tmp) change detection", "Upgrade", "Partition values and expressions"


def with_leaf(name: str) -> Stage:
    """Snapshot 1 of several examples: a root with one data manifest of D1, D2 and D3."""
    stage = Stage(name, properties=TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.settings(TO_ROOT)
    return stage


# -- the worked examples


@case(EXAMPLES, "Appends to the root manifest: D4, then D5, beside the leaf of D1, D2 and D3.")
def append_to_root(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.append("D4")
    stage.append("D5")
    return stage.files()


@case(EXAMPLES, "Appends to the root manifest using new data manifests: D4, D5 and D6 in a leaf of their own.")
def append_with_leaf(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.settings(TO_LEAVES)
    stage.append("D4", "D5", "D6")
    return stage.files()


@case(EXAMPLES, "Removing a file from the root manifest; the DELETED entry is gone from the next root.")
def remove_from_root(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    stage.remove("D1")
    stage.append("D3")
    return stage.files()


@case(EXAMPLES, "Removing a file from a leaf manifest, then another one: the vectors are merged.")
def remove_from_leaf(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.remove("D2")
    stage.remove("D3")
    return stage.files()


@case(EXAMPLES, "Overwriting files in the root manifest, twice.")
def overwrite_in_root(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1")
    stage.overwrite("D1", "D2")
    stage.overwrite("D2", "D3")
    return stage.files()


@case(EXAMPLES, "Overwriting a file in a leaf manifest: a vector on the leaf, the new file in the root.")
def overwrite_in_leaf(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.overwrite("D2", "D4")
    return stage.files()


@case(EXAMPLES, "A row delta in the root manifest only: a deletion vector of D1, and a new file.")
def row_delta_in_root(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1")
    stage.upsert(11, 12)
    return stage.files()


@case(EXAMPLES, "A complex row delta: DV1 is removed from its leaf by a vector, DV4 replaces it in a new leaf.")
def row_delta_complex(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties=TO_LEAVES)
    stage.append("D1", "D2")
    stage.table.delete("id in (10, 20, 21)")
    stage.upsert(11, 12)
    return stage.files()


@case(EXAMPLES, "Manifest compaction during an append: M1 and M2 and their vectors become M3.")
def compaction_during_append(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties=TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.append("D4", "D5", "D6")
    stage.settings(TO_ROOT)
    stage.remove("D1", "D5")
    stage.settings({"commit.manifest.min-count-to-merge": "2"})
    stage.append("D7")
    return stage.files()


@case(PROCEDURE, "Compaction during a removal leaves the manifest alone that the commit itself changes.")
def compaction_during_removal(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties=TO_LEAVES)
    for number in (1, 3, 5):
        stage.append(f"D{number}", f"D{number + 1}")
    stage.settings(TO_ROOT, {"commit.manifest.min-count-to-merge": "2"})
    stage.remove("D1")
    return stage.files()


# -- change detection: snapshot 1 has m1 of ten files, snapshot 2 hides seven of them, snapshot 3 is edited


def ten_files(name: str) -> tuple[Files, Row, Row]:
    """The files of a table with two snapshots, and the rows of m1 and of its vector."""
    stage = Stage(name, properties={**TO_LEAVES, **KEPT})
    stage.append(*(f"D{n}" for n in range(1, 11)))
    stage.remove(*(f"D{n}" for n in range(1, 8)))
    files = Files(stage.files())
    m1, vector = files.rows()
    return files, m1, vector


def third(files: Files, rows: list[Row], **summary: str) -> Mapping[str, bytes]:
    """Add snapshot 3 with these rows in its root."""
    before = head(files.metadata)
    place = "metadata/root-3.parquet"
    files.write_rows(place, rows, files.root)
    new = {
        **before,
        "snapshot-id": 300,
        "parent-snapshot-id": before["snapshot-id"],
        "sequence-number": 3,
        "timestamp-ms": before["timestamp-ms"] + 1000,
        "first-row-id": 30,
        "added-rows": 15 if "added-data-files" in summary else 0,
        "root-manifest": place,
        "summary": {"operation": "overwrite", **summary},
    }

    def edit(metadata: Row) -> None:
        metadata["snapshots"].append(new)
        metadata["snapshot-log"].append({"snapshot-id": 300, "timestamp-ms": new["timestamp-ms"]})
        metadata["refs"]["main"]["snapshot-id"] = metadata["current-snapshot-id"] = 300
        metadata.update({"last-sequence-number": 3, "next-row-id": 30 + new["added-rows"]})
        metadata["last-updated-ms"] = new["timestamp-ms"]

    files.edit_metadata(edit)
    return files.files


def by_third(row: Row, status: int, **values: object) -> Row:
    """A row with a status that snapshot 3 gives it."""
    info = {**row["version_info"], "status": status, "snapshot_id": 300}
    if status == ADDED:
        info |= {"sequence_number": 3, "file_sequence_number": 3}
    return {**row, "version_info": info, **values}


@case(DETECTION, "Scenario 1, option 1: the leaf and its vector are DELETED; three files were removed.", "leaf-deleted")
def changes_scenario_1_option_1(name: str) -> Mapping[str, bytes]:
    files, m1, vector = ten_files(name)
    return third(files, [by_third(m1, DELETED), by_third(vector, DELETED)], **{"deleted-data-files": "3"})


@case(
    DETECTION,
    "Scenario 1, option 2: the leaf is DELETED, a vector of the three removed files is ADDED.",
    "leaf-deleted",
)
def changes_scenario_1_option_2(name: str) -> Mapping[str, bytes]:
    files, m1, vector = ten_files(name)
    difference = by_third(vector, ADDED, record_count=3, deletion_vector=inline(7, 8, 9))
    return third(files, [by_third(m1, DELETED), difference], **{"deleted-data-files": "3"})


def second_leaf(files: Files, m1: Row, *, removed: bool) -> Row:
    """Write m2 of the files that were left in m1, and for scenario 3 of five new ones; its row in the root."""
    place, old = "metadata/m2.parquet", files.rows(m1["location"])[7:]
    for number, row in enumerate(old, 7):
        status = DELETED if removed and number == 8 else EXISTING
        by = 300 if status == DELETED else m1["version_info"]["snapshot_id"]
        row["version_info"] = {"status": status, "snapshot_id": by, "sequence_number": 1, "file_sequence_number": 1}
        row["first_row_id"] = 3 * number
    new: list[Row] = []
    for number in range(11, 16) if removed else ():
        data = f"data/D{number}.parquet"
        stage = Stage("spare")
        stage.append(f"D{number}")
        files.files[data] = stage.files()[data]
        info = {"status": ADDED, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
        ids = {"lower_bound": number * 10, "upper_bound": number * 10 + 2}
        stats = {"id": {**old[0]["content_stats"]["id"], **ids}}
        size = len(files.files[data])
        new.append({**old[0], "location": data, "version_info": info, "first_row_id": None, "content_stats": stats})
        new[-1]["file_size_in_bytes"] = size
    files.write_rows(place, old + new, m1["location"])
    stats_of_leaf = {**m1["content_stats"]["id"], "lower_bound": 80, "upper_bound": 152 if removed else 102}
    live = len(old + new) - (1 if removed else 0)
    stats_of_leaf |= {"value_count": 3 * live, "null_value_count": 0}
    counts = {"added": len(new), "existing": live - len(new), "deleted": 1 if removed else 0}
    sums = {f"{key}_files_count": value for key, value in counts.items()}
    sums |= {f"{key}_rows_count": 3 * value for key, value in counts.items()} | {"min_sequence_number": 1}
    return by_third(
        m1,
        ADDED,
        location=place,
        record_count=len(old + new),
        file_size_in_bytes=len(files.files[place]),
        manifest_stats=sums,
        content_stats={"id": stats_of_leaf},
        first_row_id=30,
    )


@case(DETECTION, "Scenario 2: m2 has the three files that were left in m1; nothing changed.", "carried-status")
def changes_scenario_2(name: str) -> Mapping[str, bytes]:
    files, m1, _ = ten_files(name)
    return third(files, [second_leaf(files, m1, removed=False)])


@case(
    DETECTION,
    "Scenario 3: m2 has two of the three files, the third as DELETED, and five new ones.",
    "compaction",
    "leaf-deleted",
)
def changes_scenario_3(name: str) -> Mapping[str, bytes]:
    files, m1, vector = ten_files(name)
    m2 = second_leaf(files, m1, removed=True)
    rows = [by_third(m1, DELETED), by_third(vector, DELETED), m2]
    return third(files, rows, **{"added-data-files": "5", "deleted-data-files": "1"})


# -- other commits


@case(TREE, "A table without snapshots.")
def empty_table(name: str) -> Mapping[str, bytes]:
    return Stage(name).files()


@case(PROCEDURE, "One snapshot that adds two files to an empty table.")
def append_two_files(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    return stage.files()


@case(PROCEDURE, "All files of a leaf are removed: the leaf stays with a full vector, the next root has neither.")
def remove_all_of_a_leaf(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.remove("D1")
    stage.remove("D2", "D3")
    stage.append("D4")
    return stage.files()


@case("Removing Data Files", "A file and its deletion vector are in leaves: their removal makes two manifest vectors.")
def remove_file_with_vector(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={**TO_LEAVES, **KEPT})
    stage.append("D1", "D2")
    stage.table.delete("id in (10, 20)")
    stage.settings(TO_ROOT)
    stage.remove("D1")
    return stage.files()


@case("Removing Data Files", "A file and its deletion vector are in the root: both become DELETED.")
def remove_file_with_vector_in_root(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    stage.table.delete("id = 10")
    stage.remove("D1")
    return stage.files()


@case("Replacing DVs and Data Files", "More rows of a file are deleted: the old vector is DELETED, a merged one ADDED.")
def replace_data_vector(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    stage.table.delete("id = 10")
    stage.table.delete("id = 12")
    return stage.files()


@case(TREE, "Deletion vectors in the root apply to files in leaves.")
def root_vector_of_leaf_file(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.table.delete("id in (11, 31)")
    return stage.files()


@case(MAINTENANCE, "Data files of the root are flushed to a leaf, which is EXISTING like its entries.")
def flush_data_files(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={"commit.root.max-data-files": "2"})
    stage.append("D1", "D2")
    stage.append("D3")
    stage.append("D4")
    return stage.files()


@case(MAINTENANCE, "Deletion vectors of the root are flushed, independent of data files.")
def flush_vectors(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={"commit.root.max-dvs": "1"})
    stage.append("D1", "D2", "D3")
    stage.table.delete("id = 10")
    stage.table.delete("id = 20")
    stage.table.delete("id = 30")
    return stage.files()


@case("Manifest Compaction", "Small leaves are merged by an append; no entry changes.")
def merge_leaves(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={**TO_LEAVES, "commit.manifest.min-count-to-merge": "3"})
    for number in (1, 2, 3, 4):
        stage.append(f"D{number}")
    return stage.files()


@case("Manifest Compaction", "All manifests are rewritten by a commit that changes nothing: operation replace.")
def rewrite_manifests(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.remove("D2")
    stage.append("D4")
    stage.table.delete("id = 10")
    stage.table.rewrite_manifests().execute()
    return stage.files()


@case("Manifest Compaction", "A leaf with many removed entries is rewritten, and an entry of the new leaf is removed.")
def fold_leaf(name: str) -> Mapping[str, bytes]:
    properties = {**TO_LEAVES, "commit.leaf.min-dead-rows": "1", "commit.leaf.max-dead-percent": "1000"}
    stage = Stage(name, properties=properties)
    stage.append(*(f"D{n}" for n in range(1, 6)))
    stage.settings(TO_ROOT)
    stage.remove("D1", "D3", "D4")
    stage.settings({"commit.leaf.max-dead-percent": "50"})
    stage.remove("D5")
    return stage.files()


@case("Affinity", "A delete manifest that is affiliated to a data manifest, and one that is not.")
def affinity(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={**TO_LEAVES, **KEPT})
    stage.append("D1", "D2")
    stage.append("D3", "D4")
    stage.table.delete("id in (10, 20)")
    stage.upsert(30, deletes="equality")
    return stage.files()


@case("Affinity", "When data manifests are merged, the affinity names the new one.")
def affinity_after_merge(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties=TO_LEAVES)
    stage.append("D1", "D2")
    stage.append("D3", "D4")
    stage.table.delete("id in (10, 20)")
    stage.settings({"commit.manifest.min-count-to-merge": "2"})
    stage.append("D5")
    return stage.files()


@case("Leaf Manifest DVs", "Manifest deletion vectors in a Puffin file, the second replacing the first.")
def manifest_vector_in_puffin(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.settings({"write.manifest-dv.inline-max-bytes": "0"})
    stage.remove("D2")
    stage.remove("D3")
    return stage.files()


@case("Equality Deletes", "Equality deletes in the root apply to rows with smaller sequence numbers only.")
def equality_deletes_in_root(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    stage.upsert(11, 20, deletes="equality")
    return stage.files()


@case("Equality Deletes", "Equality deletes in a delete manifest.")
def equality_deletes_in_leaf(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties=TO_LEAVES)
    stage.append("D1", "D2")
    stage.upsert(11, 20, deletes="equality")
    stage.upsert(11, deletes="equality")
    return stage.files()


CITIES = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": ["Oslo", "Rome", None]})


@case("Equality Deletes", "Equality deletes match by spec id and the partition tuple from statistics.")
def equality_deletes_by_partition(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, city string", partition_by=["city"])
    stage.table.append(CITIES)
    new = pa.table({"id": pa.array([1], pa.int64()), "city": ["Oslo"]})
    stage.table.upsert(new, on=["id", "city"], deletes="equality")
    return stage.files()


# -- partition values and row lineage


@case(PARTITIONS, "Identity partitions: the value is in the statistics of the column, at full length; null is a value.")
def partition_identity(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, city string", partition_by=["city"])
    stage.table.append(CITIES)
    stage.table.append(pa.table({"id": pa.array([4], pa.int64()), "city": ["Llanfair" * 8]}))
    return stage.files()


@case(PARTITIONS, "Bucket and truncate: values under the ids of their expressions, in the root and in a leaf.")
def partition_bucket_truncate(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, city string", partition_by=["bucket(4, id)", "truncate(2, city)"])
    stage.table.append(CITIES)
    stage.settings(TO_LEAVES)
    stage.table.append(CITIES)
    return stage.files()


@case(PARTITIONS, "A deletion vector has the partition values of its data file.")
def partition_of_a_vector(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, city string", partition_by=["city"])
    cities = ["Oslo", "Oslo", "Rome"]
    stage.table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "city": cities}))
    stage.table.delete("id = 1")
    return stage.files()


@case(PARTITIONS, "Year, month, day and hour of a timestamp.")
def partition_times(name: str) -> Mapping[str, bytes]:
    by = ["year(a)", "month(b)", "day(c)", "hour(d)"]
    stage = Stage(name, "a date, b date, c timestamp_ntz, d timestamp", partition_by=by, properties=TO_LEAVES)
    days = [date(1969, 12, 31), date(2025, 6, 20)]
    times = [datetime(1969, 12, 31, 23), datetime(2025, 6, 20, 10)]
    stage.table.append(
        pa.table(
            {
                "a": days,
                "b": days,
                "c": pa.array(times, pa.timestamp("us")),
                "d": pa.array(times, pa.timestamp("us", tz="UTC")),
            }
        )
    )
    return stage.files()


@case(PARTITIONS, "Identity partitions of other types: NaN, a decimal, binary, a boolean.")
def partition_types(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "x double, d decimal(9,2), b binary, f boolean", partition_by=["x", "d", "b", "f"])
    columns = {"x": [float("nan"), -0.5], "b": [b"\x00\xff", None], "f": [True, False]}
    stage.table.append(pa.table({**columns, "d": pa.array([1, None], pa.decimal128(9, 2))}))
    return stage.files()


@case(PARTITIONS, "Two partition specs: the root has entries of both, each leaf of one.")
def partition_evolution(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, city string", partition_by=["city"])
    stage.table.append(CITIES.slice(0, 1))
    with stage.table.update_partitioning() as change:
        change.remove("city")
        change.add("bucket(4, id)", name="id_bucket")
    stage.table.append(CITIES.slice(1, 1))
    stage.settings(TO_LEAVES)
    stage.table.append(CITIES.slice(2, 1))
    return stage.files()


@case(PARTITIONS, "A partition spec that names expressions only, as in the example of the proposal.")
def partition_by_expression_id(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, city string", partition_by=["bucket(4, id)", "city"])
    stage.table.append(CITIES.slice(0, 1))
    files = Files(stage.files())

    def edit(metadata: Row) -> None:
        for spec in metadata["partition-specs"]:
            spec["fields"] = [{"expr-id": field["expr-id"]} for field in spec["fields"]]

    files.edit_metadata(edit)
    return files.files


@case("First Row ID Inheritance", "Updated and moved rows keep their row ids, which are columns of the new files.")
def row_lineage(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "id bigint, n int", properties={"write.update.mode": "copy-on-write"})
    stage.table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([0, 0, 0], pa.int32())}))
    stage.table.update({"n": "1"}, where="id = 2")
    stage.table.append(pa.table({"id": pa.array([4], pa.int64()), "n": pa.array([0], pa.int32())}))
    return stage.files()


@case("First Row ID Inheritance", "A file is removed from a leaf: the row ids of the files after it stay.")
def row_ids_after_removal(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.remove("D1")
    stage.append("D4")
    return stage.files()


@case("Column statistics", "Columns are added, renamed, promoted and dropped; entries keep their statistics by id.")
def schema_evolution(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, "a int, b string")
    stage.table.append(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    with stage.table.update_schema() as change:
        change.add_column("c", "double")
        change.rename_column("b", "text")
        change.update_column("a", type="bigint")
    stage.table.append(pa.table({"a": pa.array([2**40], pa.int64()), "text": ["y"], "c": [0.5]}))
    with stage.table.update_schema() as change:
        change.drop_column("text")
    stage.table.append(pa.table({"a": pa.array([3], pa.int64()), "c": [float("nan")]}))
    return stage.files()


# -- branches, history, locations


@case("Snapshots", "A branch with a commit of its own, and a tag.")
def branch_and_tag(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1")
    stage.table.tag("first")
    stage.table.branch("dev")
    stage.append("D2", branch="dev")
    stage.append("D3")
    return stage.files()


@case("Snapshots", "The parent of the only snapshot has expired; its DELETED entry still records the removal.")
def expired_parent(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    stage.remove("D1")
    files = Files(stage.files())
    last_snapshot_only(files)
    return files.files


@case("Snapshots", "The root is also named under manifest-list, with the same location.")
def mirrored_manifest_list(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={"write.metadata.mirror-manifest-list": "true"})
    stage.append("D1")
    return stage.files()


@case("Locations", "A table that was moved: its metadata states the location where it was.")
def moved_table(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.table.delete("id = 10")
    stage.remove("D2")
    files = Files(stage.files())
    files.edit_metadata(lambda metadata: metadata.update(location="s3://elsewhere/t"))
    return files.files


# -- roots of other writers


@case(STRUCTURE, "Null snapshot id, sequence numbers and first row id of ADDED root entries are inherited.")
def inherited_in_root(name: str) -> Mapping[str, bytes]:
    stage = Stage(name)
    stage.append("D1", "D2")
    files = Files(stage.files())
    nothing = {"snapshot_id": None, "sequence_number": None, "file_sequence_number": None}

    def edit(rows: list[Row]) -> None:
        for row in rows:
            row["version_info"].update(nothing)
            row["first_row_id"] = None

    files.edit_root(edit)
    return files.files


@case(STRUCTURE, "Columns in another order and with other names: only the field ids count.")
def columns_by_id(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.remove("D2")
    files = Files(stage.files())

    def edit(table: pa.Table) -> pa.Table:
        table = table.select(table.column_names[::-1])
        return table.rename_columns([f"c{number}" for number in range(table.num_columns)])

    files.edit_table(files.root, edit)
    return files.files


@case(STRUCTURE, "A leaf of several row groups: positions of its vector count rows across them.")
def leaf_of_row_groups(name: str) -> Mapping[str, bytes]:
    stage = with_leaf(name)
    stage.remove("D2")
    files = Files(stage.files())
    last_snapshot_only(files)
    leaf = files.leaf()
    files.write_table(leaf, files._parquet(leaf).read(), leaf, groups=1)
    files.sized(leaf)
    return files.files


@case(STRUCTURE, "A root entry of every kind, in one snapshot. Most invalid cases change a file of this one.")
def every_kind(name: str) -> Mapping[str, bytes]:
    stage = Stage(name, properties={**TO_LEAVES, **KEPT})
    stage.append("D1", "D2", "D3")
    stage.table.delete("id = 10")
    stage.settings(TO_ROOT)
    stage.append("D4", "D5")
    stage.table.delete("id = 41")
    stage.upsert(50, deletes="equality")
    stage.remove("D2")
    files = Files(stage.files())
    last_snapshot_only(files)
    assert {row["content_type"] for row in files.rows()} == set(range(6))
    return files.files


# -- upgrades


def old(name: str, version: int, **properties: str) -> Stage:
    """A partitioned table of an older version with two manifests, one of them with a DELETED entry."""
    mode = {"write.delete.mode": "copy-on-write", **{key.replace("_", "."): value for key, value in properties.items()}}
    stage = Stage(name, "id bigint, city string", version=version, partition_by=["city"], properties=mode)
    stage.table.append(CITIES)
    stage.table.append(CITIES.slice(0, 1))
    stage.table.delete("id = 2")
    return stage


@case(UPGRADE, "A table of version 1, upgraded: its first commit has a root entry for every manifest.")
def upgrade_from_v1(name: str) -> Mapping[str, bytes]:
    stage = old(name, 1)
    stage.table.upgrade(4)
    stage.table.append(CITIES.slice(2, 1))
    return stage.files()


@case(UPGRADE, "A table of version 2 with position and equality deletes, upgraded; they continue to apply.")
def upgrade_from_v2(name: str) -> Mapping[str, bytes]:
    stage = old(name, 2)
    stage.table.append(pa.table({"id": pa.array([5, 6], pa.int64()), "city": ["Oslo", "Oslo"]}))
    stage.settings({"write.delete.mode": "merge-on-read"})
    stage.table.delete("id = 5")
    stage.table.upsert(CITIES.slice(0, 1), on=["id", "city"], deletes="equality")
    stage.table.upgrade(4)
    stage.table.append(CITIES.slice(2, 1))
    return stage.files()


@case(UPGRADE, "A table of version 3 with a deletion vector, upgraded; row ids stay.")
def upgrade_from_v3(name: str) -> Mapping[str, bytes]:
    stage = old(name, 3)
    stage.table.append(pa.table({"id": pa.array([5, 6], pa.int64()), "city": ["Oslo", "Oslo"]}))
    stage.settings({"write.delete.mode": "merge-on-read"})
    stage.table.delete("id = 5")
    stage.table.upgrade(4)
    stage.table.append(CITIES.slice(2, 1))
    return stage.files()


@case(UPGRADE, "The metadata is of version 4, the snapshots still have manifest lists.")
def upgrade_without_commit(name: str) -> Mapping[str, bytes]:
    stage = old(name, 3)
    stage.table.upgrade(4)
    return stage.files()


@case(UPGRADE, "A manifest deletion vector on an Avro manifest, whose positions count DELETED entries too.")
def upgrade_remove_from_avro_leaf(name: str) -> Mapping[str, bytes]:
    stage = old(name, 3)
    stage.table.upgrade(4)
    (task,) = (t for t in stage.table.scan("id = 3").plan().tasks.to_pylist())
    stage.table.remove_files([task["location"]])
    stage.table.delete("id = 1")
    return stage.files()


@case(UPGRADE, "The Avro manifests of an upgraded table are rewritten as V4 manifests.")
def upgrade_rewrite_manifests(name: str) -> Mapping[str, bytes]:
    stage = old(name, 2)
    stage.table.upgrade(4)
    stage.table.rewrite_manifests().execute()
    return stage.files()


__all__ = ["CASES", "DATA", "DATA_MANIFEST", "MANIFEST_DV", "ValidCase", "blob"]
