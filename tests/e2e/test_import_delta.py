"""A Delta table becomes a table: its rows at one version, by reference or written anew, as deltalake reads them."""

from __future__ import annotations

import datetime
import json
import struct
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

import icefloe
from icefloe.errors import InputError, NoSuchFile, UnsupportedError
from icefloe.formats.importing.delta import SOURCE_ID, SOURCE_LOCATION, SOURCE_VERSION
from support.tables import new_catalog, sorted_rows

deltalake = pytest.importorskip("deltalake")

MODES = ("reference", "rewrite")
ODD = ["a b", "x/y=%é", "", None, "50%25", "it's", "ö:?#", "a\\b"]


@pytest.fixture
def cat(tmp_path: Path) -> icefloe.Catalog:
    return new_catalog(tmp_path)


def rows(start: int, stop: int, **more: Any) -> pa.Table:
    ids = range(start, stop)
    columns = {"id": pa.array(ids, pa.int64()), "part": [ODD[number % len(ODD)] for number in ids]}
    return pa.table({**columns, "amount": [number / 2 for number in ids], **more})


def delta_rows(folder: Path, version: int | None = None) -> pa.Table:
    """The rows as deltalake reads them."""
    return pa.table(deltalake.DeltaTable(folder, version=version).to_pyarrow_table())


def check_equal(table: icefloe.Table, folder: Path, version: int | None = None) -> None:
    expected = delta_rows(folder, version)
    found = table.scan().to_arrow()
    assert found.column_names == expected.column_names
    assert sorted_rows(found) == sorted_rows(expected)
    assert table.verify(files=True, rows=True).ok


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_partitioned_table_that_was_changed_has_the_rows_of_its_current_state(cat, tmp_path, mode, version):
    folder = tmp_path / "delta table"
    deltalake.write_deltalake(folder, rows(0, 40), partition_by=["part"])
    deltalake.write_deltalake(folder, rows(40, 50, note=["n"] * 10), mode="append", schema_mode="merge")
    source = deltalake.DeltaTable(folder)
    source.update(updates={"amount": "amount + 1000"}, predicate="id < 5")
    source.delete("id >= 20 AND id < 23")
    table = cat.import_table("db.t", str(folder), format="delta", mode=mode, format_version=version)
    check_equal(table, folder)
    assert [field.name for field in table.spec.fields] == ["part"]
    assert table.scan("part = 'x/y=%é' and id < 10").count() == 2
    # An empty text is null as the value of a partition (Delta protocol: Partition Value Serialization).
    nulls = [n for n in range(50) if ODD[n % 8] in (None, "") and not 20 <= n < 23]
    assert table.scan("part is null").count() == len(nulls)
    recorded = {name: table.properties[name] for name in (SOURCE_LOCATION, SOURCE_VERSION, SOURCE_ID)}
    assert recorded == {
        SOURCE_LOCATION: f"file://{folder}",
        SOURCE_VERSION: str(source.version()),
        SOURCE_ID: str(source.metadata().id),
    }
    assert (folder / "_delta_log").is_dir()
    is_inside = [f"file://{folder}/" in location for location in table.inspect.data_files()["file_path"].to_pylist()]
    assert set(is_inside) == {mode == "reference"}


@pytest.mark.parametrize("mode", MODES)
def test_an_older_version_is_imported_if_asked_and_the_newest_one_is_pinned(cat, tmp_path, mode, monkeypatch):
    folder = tmp_path / "d"
    deltalake.write_deltalake(folder, rows(0, 10))
    deltalake.write_deltalake(folder, rows(10, 20), mode="append")
    table = cat.import_table("db.old", str(folder), format="delta", mode=mode, version=0)
    check_equal(table, folder, 0)
    assert table.properties[SOURCE_VERSION] == "0"
    read = icefloe.table.catalog.look_into_delta

    def then_changed(*given: Any) -> Any:
        found = read(*given)
        deltalake.write_deltalake(folder, rows(50, 60), mode="overwrite")
        return found

    monkeypatch.setattr(icefloe.table.catalog, "look_into_delta", then_changed)
    table = cat.import_table("db.pinned", str(folder), format="delta", mode=mode)
    assert table.properties[SOURCE_VERSION] == "1"
    check_equal(table, folder, 1)


def test_a_vacuumed_table_has_its_current_rows_but_not_its_older_versions(cat, tmp_path):
    folder = tmp_path / "d"
    deltalake.write_deltalake(folder, rows(0, 10))
    deltalake.write_deltalake(folder, rows(10, 20), mode="overwrite")
    gone = deltalake.DeltaTable(folder).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert len(gone) == 1
    check_equal(cat.import_table("db.t", str(folder), format="delta"), folder)
    with pytest.raises(NoSuchFile, match=gone[0]):
        cat.import_table("db.old", str(folder), format="delta", version=0)
    assert not cat.table_exists("db.old")


def test_an_empty_table_is_imported_with_its_columns(cat, tmp_path):
    folder = tmp_path / "d"
    deltalake.DeltaTable.create(folder, schema=pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_by=["p"])
    for mode in MODES:
        table = cat.import_table(f"db.{mode}", str(folder), format="delta", mode=mode)
        assert (table.scan().count(), [field.name for field in table.schema.fields]) == (0, ["id", "p"])


DAY = datetime.date(2026, 11, 15)
INSTANT = datetime.datetime(2026, 11, 15, 9, 30, tzinfo=datetime.UTC)
# Delta type, a value, and the type of the imported column.
TYPES: dict[str, tuple[pa.Array, str]] = {
    "byte": (pa.array([1, None], pa.int8()), "int"),
    "short": (pa.array([2, None], pa.int16()), "int"),
    "integer": (pa.array([3, None], pa.int32()), "int"),
    "long": (pa.array([4, None], pa.int64()), "long"),
    "float": (pa.array([1.5, None], pa.float32()), "float"),
    "double": (pa.array([2.5, None], pa.float64()), "double"),
    "decimal": (pa.array([Decimal("1.20"), None], pa.decimal128(10, 2)), "decimal(10, 2)"),
    "string": (pa.array(["ü", None], pa.string()), "string"),
    "binary": (pa.array([b"\x00\xff", None], pa.binary()), "binary"),
    "boolean": (pa.array([True, None], pa.bool_()), "boolean"),
    "date": (pa.array([DAY, None], pa.date32()), "date"),
    "timestamp": (pa.array([INSTANT, None], pa.timestamp("us", tz="UTC")), "timestamptz"),
    "timestamp_ntz": (pa.array([INSTANT.replace(tzinfo=None), None], pa.timestamp("us")), "timestamp"),
    "array": (pa.array([[1, None], None], pa.list_(pa.int64())), "list<long>"),
    "struct": (pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())])), "struct<18: a: long>"),
    "map": (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), "map<string, long>"),
}
PARTITIONS = ("integer", "long", "double", "decimal", "string", "boolean", "date", "timestamp", "timestamp_ntz")


@pytest.mark.parametrize("mode", MODES)
def test_every_type_of_delta_has_a_type(cat, tmp_path, mode):
    folder = tmp_path / "d"
    deltalake.write_deltalake(folder, pa.table({name: values for name, (values, _) in TYPES.items()}))
    table = cat.import_table("db.t", str(folder), format="delta", mode=mode)
    assert {field.name: str(field.type) for field in table.schema.fields} == {
        name: type_ for name, (_, type_) in TYPES.items()
    }
    check_equal(table, folder)


@pytest.mark.parametrize("mode", MODES)
def test_tables_are_partitioned_by_columns_of_many_types(cat, tmp_path, mode):
    for name in PARTITIONS:
        folder = tmp_path / name
        data = pa.table({"id": [1, 2], "key": TYPES[name][0]})
        deltalake.write_deltalake(folder, data, partition_by=["key"])
        table = cat.import_table(f"db.{name}", str(folder), format="delta", mode=mode)
        check_equal(table, folder)
        assert table.scan("key is null").count() == 1, name


# -- deletion vectors, which deltalake reads but does not write


def z85(data: bytes) -> str:
    """The text of an inline deletion vector."""
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded = data + bytes(-len(data) % 4)
    text = ""
    for (number,) in struct.iter_unpack(">I", padded):
        text += "".join(letters[number // 85**power % 85] for power in range(4, -1, -1))
    return text


def with_vector(folder: Path, positions: list[int]) -> Path:
    """A Delta table of ten rows, some of which a deletion vector deletes."""
    (folder / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array(range(10), pa.int64())}), folder / "a.parquet")
    payload = struct.pack("<i", 1681511377) + BitMap64(positions).serialize()
    vector = {
        "storageType": "i",
        "pathOrInlineDv": z85(payload),
        "sizeInBytes": len(payload),
        "cardinality": len(positions),
    }
    features = ["deletionVectors"]
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "0f4cf7a3-9d06-4d2c-93de-1f7ad65bd7f4",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {"delta.enableDeletionVectors": "true"},
                "createdTime": 0,
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (folder / "a.parquet").stat().st_size,
                "modificationTime": 0,
                "dataChange": True,
                "stats": json.dumps({"numRecords": 10}),
                "deletionVector": vector,
            }
        },
    ]
    log = folder / "_delta_log" / f"{0:020d}.json"
    log.write_text("\n".join(json.dumps(action) for action in actions))
    return folder


def test_deletion_vectors_are_applied_when_rows_are_written_anew_and_refused_by_reference(cat, tmp_path):
    folder = with_vector(tmp_path / "d", [0, 3, 9])
    table = cat.import_table("db.t", str(folder), format="delta", mode="rewrite")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 4, 5, 6, 7, 8]
    with pytest.raises(UnsupportedError, match=r"a\.parquet.*mode='rewrite'.*REORG TABLE"):
        cat.import_table("db.u", str(folder), format="delta")
    assert not cat.table_exists("db.u")


# -- what is refused


def test_column_mapping_is_refused_by_name(cat, tmp_path):
    folder = tmp_path / "d"
    deltalake.write_deltalake(folder, rows(0, 3))
    log = folder / "_delta_log" / f"{0:020d}.json"
    changed = log.read_text().replace('"configuration":{}', '"configuration":{"delta.columnMapping.mode":"name"}')
    log.write_text(changed)
    with pytest.raises(UnsupportedError, match=r"delta\.columnMapping\.mode"):
        cat.import_table("db.t", str(folder), format="delta")


def test_a_delta_table_is_not_taken_for_a_folder_of_files(cat, tmp_path):
    folder = tmp_path / "d"
    deltalake.write_deltalake(folder, rows(0, 3))
    with pytest.raises(InputError, match="format='delta'"):
        cat.import_table("db.t", str(folder))


def test_a_folder_without_a_log_and_wrong_options_are_refused(cat, tmp_path):
    (tmp_path / "d").mkdir()
    with pytest.raises(NoSuchFile, match="no Delta table"):
        cat.import_table("db.t", str(tmp_path / "d"), format="delta")
    with pytest.raises(InputError, match="format='hudi'"):
        cat.import_table("db.t", str(tmp_path / "d"), format="hudi")
    with pytest.raises(InputError, match="version=1"):
        cat.import_table("db.t", str(tmp_path / "d"), version=1)
    with pytest.raises(UnsupportedError, match="local disk or from S3"):
        cat.import_table("db.t", "memory://d", format="delta")


def test_spark_is_refused_for_a_delta_table(cat, tmp_path):
    folder = tmp_path / "d"
    deltalake.write_deltalake(folder, rows(0, 3))
    with pytest.raises(UnsupportedError, match="spark="):
        cat.import_table("db.t", str(folder), format="delta", mode="rewrite", spark=object())


def test_without_the_library_the_error_names_what_to_install(cat, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(UnsupportedError, match=r"icefloe\[delta\]"):
        cat.import_table("db.t", str(tmp_path), format="delta")
