"""Writing through the public surface: sort orders, metrics, file formats, and rows that bring columns of their own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icefloe.errors import ConflictError, InputError
from icefloe.model.entries import MANIFESTS, ContentType, Measure, concat
from icefloe.table.held_table import pointer_of
from icefloe.tree.root import read_live_leaf, read_root
from support.tables import VERSIONS, new_catalog, sorted_rows, stored_by_others

pytestmark = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def lake(tmp_path):
    return new_catalog(tmp_path)


def entries(table):
    base = pointer_of(table).load()
    root = read_root(base.store, base.metadata.current_snapshot)
    inside = [read_live_leaf(base.store, root, leaf) for leaf in root.leaves(*MANIFESTS)]
    return concat([root.rows(ContentType.DATA), *inside])


def stored(table):
    return [pq.read_table(at.removeprefix("file://")) for at in table.scan().plan().tasks["location"].to_pylist()]


# -- sort order


def test_files_are_sorted_and_say_so(lake, version):
    table = lake.create_table("db.t", schema="id bigint, city string", sort_by=["id desc"], format_version=version)
    table.append(pa.table({"id": [2, 9, 5], "city": ["a", "b", "c"]}))
    [file] = stored(table)
    assert file["id"].to_pylist() == [9, 5, 2]
    assert entries(table)["sort_order_id"].to_pylist() == [table.metadata.default_sort_order_id] != [0]


def test_a_changed_order_is_for_the_rows_to_come(lake, version):
    table = lake.create_table("db.t", schema="id bigint, city string", format_version=version)
    table.append(pa.table({"id": [2, 1], "city": ["x", "y"]}))
    table.set_sort_order("city")
    table.append(pa.table({"id": [3, 4], "city": ["b", "a"]}))
    assert sorted(file["id"].to_pylist() for file in stored(table)) == [[2, 1], [4, 3]]
    found = entries(table).sort_by("record_count")["sort_order_id"].to_pylist()
    assert sorted(found, key=str) == sorted([None, table.metadata.default_sort_order_id], key=str)


def test_rows_that_are_copied_are_sorted_too(lake, version):
    copying = {"write.delete.mode": "copy-on-write"}
    table = lake.create_table(
        "db.t", schema="id bigint, n int", sort_by=["n"], format_version=version, properties=copying
    )
    table.append(pa.table({"id": [1, 2, 3, 4], "n": [4, 3, 2, 1]}))
    table.delete("id = 2")
    [file] = stored(table)
    assert file["n"].to_pylist() == [1, 2, 4]
    assert entries(table)["sort_order_id"].to_pylist() == [table.metadata.default_sort_order_id]


# -- metrics


def test_metrics_follow_the_properties_of_the_table(lake, version):
    properties = {
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.name": "truncate(2)",
        "write.metadata.metrics.column.quiet": "none",
    }
    table = lake.create_table(
        "db.t", schema="id bigint, name string, quiet string", format_version=version, properties=properties
    )
    table.append(pa.table({"id": [1, 2], "name": ["abc", None], "quiet": ["x", "y"]}))
    [found] = entries(table).to_pylist()
    assert (found["lower_bound:2"], found["upper_bound:2"], found["null_value_count:2"]) == ("ab", "ac", 1)
    assert (found.get("lower_bound:1"), found["value_count:1"]) == (None, 2)
    assert all(value is None for name, value in found.items() if name.endswith(":3"))
    assert table.scan("name = 'abc'").to_arrow()["id"].to_pylist() == [1]
    assert table.scan("quiet = 'y'").to_arrow()["id"].to_pylist() == [2]
    assert table.scan("id = 2").count() == 1


def test_partitions_are_known_even_if_no_column_is_measured(lake, version):
    table = lake.create_table(
        "db.t",
        schema="id bigint, city string",
        partition_by=["city"],
        format_version=version,
        properties={"write.metadata.metrics.default": "none"},
    )
    table.append(pa.table({"id": [1, 2, 3], "city": ["a city of a long name", "Rome", None]}))
    assert table.scan("city = 'Rome'").plan().files == 1
    assert table.scan("city is null").to_arrow()["id"].to_pylist() == [3]
    table.overwrite_partitions(pa.table({"id": [9], "city": ["a city of a long name"]}))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [2, 3, 9]


def test_entries_of_older_versions_tell_the_sizes_of_columns(lake, version, tmp_path):
    table = lake.create_table("db.t", schema="id bigint, l array<int>", format_version=version)
    table.append(pa.table({"id": [1, 2], "l": [[1], [2, 3]]}))
    found = entries(new_catalog(tmp_path).load_table("db.t"))  # as another process reads them
    sizes = [found[name][0].as_py() for name in found.column_names if name.startswith(Measure.COLUMN_SIZE)]
    assert (len(sizes) == 2 and min(sizes) > 0) if version < 4 else sizes == []


# -- file formats


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_table_says_in_which_format_its_files_are(lake, version, file_format):
    table = lake.create_table(
        "db.t", schema="id bigint, x double", format_version=version, properties={"write.format.default": file_format}
    )
    rows = pa.table({"id": [1, 2, None], "x": [float("nan"), 0.5, None]})
    table.append(rows)
    [task] = table.scan().plan().tasks.to_pylist()
    assert (task["file_format"], task["location"].endswith(f".{file_format}")) == (file_format, True)
    assert repr(sorted_rows(table.scan().to_arrow())) == repr(sorted_rows(rows))
    [found] = entries(table).to_pylist()
    assert (found["lower_bound:1"], found["upper_bound:1"], found["null_value_count:1"]) == (1, 2, 1)
    assert (found["lower_bound:2"], found["nan_value_count:2"]) == (0.5, 1)


def test_a_format_that_is_not_written_is_refused_by_name(lake, version):
    table = lake.create_table("db.t", schema="id bigint", format_version=version)
    stored_by_others(table, {"write.format.default": "csv"})
    with pytest.raises(InputError, match=r"parquet.*'csv'"):
        table.append(pa.table({"id": [1]}))


# -- rows that bring columns of their own


@pytest.fixture
def table(lake, version):
    made = lake.create_table("db.t", schema="id int not null, s struct<a: int>", format_version=version)
    made.append(pa.table({"id": [1], "s": [{"a": 1}]}))
    return made


def test_new_columns_and_rows_are_one_commit(table, version):
    before = len(table.metadata.metadata_log)
    rows = pa.table({"id": [2], "s": [{"a": 2, "b": "x"}], "note": ["new"]})
    result = table.append(rows, schema_mode="merge")
    assert (result.rows_added, result.snapshots, result.attempts) == (1, 1, 1)
    assert result.phases.write > 0
    assert len(table.metadata.metadata_log) == before + 1
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "s": {"a": 1, "b": None}, "note": None},
        {"id": 2, "s": {"a": 2, "b": "x"}, "note": "new"},
    ]
    assert table.metadata.current_snapshot.schema_id == table.schema.schema_id


def test_rows_that_fit_leave_the_schema_alone(table, version):
    before = table.schema
    assert table.append(pa.table({"id": [2]}), schema_mode="merge").rows_added == 1
    assert table.schema == before


def test_columns_are_added_without_rows_too(table, version):
    before = table.metadata.current_snapshot_id
    empty = pa.table({"id": pa.array([], pa.int32()), "note": pa.array([], pa.string())})
    assert table.append(empty, schema_mode="merge").snapshot_id is None
    with table.transaction() as tx:
        tx.append(empty.append_column("more", pa.array([], pa.int64())), schema_mode="merge")
    assert [field.name for field in table.schema.fields] == ["id", "s", "note", "more"]
    assert table.metadata.current_snapshot_id == before


def test_a_stream_is_opened_once(table, version):
    batches = pa.table({"id": [2, 3], "note": ["x", "y"]}).to_batches(max_chunksize=1)
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    assert table.append(reader, schema_mode="merge").rows_added == 2
    assert pc.count(table.scan().to_arrow()["note"]).as_py() == 2


def test_without_merge_a_new_column_is_refused(table, version):
    with pytest.raises(InputError, match="no column note"):
        table.append(pa.table({"id": [2], "note": ["new"]}))
    with pytest.raises(InputError, match="expected 'strict', or 'merge'"):
        table.append(pa.table({"id": [2]}), schema_mode="overwrite")


def test_rows_that_do_not_fit_change_nothing(table, version, tmp_path):
    before, files = table.metadata_location, set(tmp_path.rglob("*.parquet"))
    with pytest.raises(InputError, match="'id' is required and has 1 nulls"):
        table.append(pa.table({"id": pa.array([None], pa.int32()), "note": ["new"]}), schema_mode="merge")
    assert table.metadata_location == before
    assert set(tmp_path.rglob("*.parquet")) == files


def test_a_staged_append_cannot_change_the_schema(table, version):
    with pytest.raises(InputError, match="wap_id= stages rows"):
        table.append(pa.table({"id": [2], "note": ["new"]}), schema_mode="merge", wap_id="audit")


def test_in_a_transaction_the_columns_are_there_for_what_follows(table, version):
    with table.transaction() as tx:
        tx.append(pa.table({"id": [2], "note": ["x"]}), schema_mode="merge")
        tx.append(pa.table({"id": [3], "note": ["y"], "more": [1.5]}), schema_mode="merge")
        tx.delete("note = 'x'")
    assert table.scan(columns=["id", "note", "more"]).to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "note": None, "more": None},
        {"id": 3, "note": "y", "more": 1.5},
    ]


def test_in_a_transaction_rows_that_fail_take_their_columns_back(table, version):
    """The rows were refused and the author went on without them, but the column that came for them stayed."""
    with table.transaction() as tx:
        with pytest.raises(InputError, match="id"):
            tx.append(pa.table({"id": [None], "note": ["x"]}), schema_mode="merge")
        tx.append(pa.table({"id": [3], "other": ["y"]}), schema_mode="merge")
    assert [field.name for field in table.schema.fields] == ["id", "s", "other"]
    assert table.scan(columns=["id", "other"]).to_arrow().sort_by("id")["other"].to_pylist() == [None, "y"]


def test_rows_never_come_back_under_the_id_of_another_column(table, version):
    """Another commit adds a column and drops it: the schema is what it was, but its next id is not."""
    late = table.transaction()
    late.append(pa.table({"id": [2], "note": ["x"]}), schema_mode="merge")
    with table.update_schema() as update:
        update.add_column("gone", "int")
    with table.update_schema() as update:
        update.drop_column("gone")
    with pytest.raises(ConflictError, match="schema"):
        late.commit()
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "s": {"a": 1}}]
    assert table.append(pa.table({"id": [2], "note": ["x"]}), schema_mode="merge").rows_added == 1
    assert table.scan("id = 2", columns=["note"]).to_arrow().to_pylist() == [{"note": "x"}]
