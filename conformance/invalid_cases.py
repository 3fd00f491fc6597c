"""The invalid tables of the kit: each is a valid case with one fault, and names the rule that the fault breaks."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from editing import (
    ADDED,
    DATA,
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    DV,
    EQUALITY,
    EXISTING,
    MANIFEST_DV,
    Files,
    Row,
    blob,
    head,
    inline,
)

Edit = Callable[[Files], object]
BASE = "every-kind"  # M1 of D1, D2, D3; M2 of DV1; D4, D5, D6; DV4; E1; a vector of M1 that hides D2


@dataclass(frozen=True, kw_only=True)
class InvalidCase:
    """A valid case with a fault; ``rule`` is a rule of the checker."""

    name: str
    rule: str
    text: str
    edit: Edit
    base: str = BASE


CASES: list[InvalidCase] = []


def add(name: str, rule: str, text: str, edit: Edit, base: str = BASE) -> None:
    CASES.append(InvalidCase(name=name, rule=rule, text=text, edit=edit, base=base))


def row_of(rows: list[Row], kind: int, number: int = 0) -> Row:
    """The n-th row of a kind."""
    return [row for row in rows if row["content_type"] == kind][number]


def put(kind: int, number: int = 0, **values: object) -> Edit:
    """Set columns of a root row."""
    return lambda files: files.edit_root(lambda rows: row_of(rows, kind, number).update(values))


def put_in(group: str, kind: int, number: int = 0, **values: object) -> Edit:
    """Set members of a struct of a root row."""
    return lambda files: files.edit_root(lambda rows: row_of(rows, kind, number)[group].update(values))


def info(kind: int, number: int = 0, **values: object) -> Edit:
    return put_in("version_info", kind, number, **values)


def copied(kind: int, **values: object) -> Edit:
    """Add a copy of a root row."""
    return lambda files: files.edit_root(lambda rows: rows.append({**row_of(rows, kind), **values}))


def leaf_row(kind: int, position: int = 0, **values: object) -> Edit:
    """Set columns of a row of a leaf."""

    def edit(files: Files) -> None:
        leaf = files.leaf(kind)
        files.edit_manifest(leaf, lambda rows: rows[position].update(values))
        files.sized(leaf)

    return edit


def leaf_rows(kind: int, change: Callable[[list[Row]], object]) -> Edit:
    """Change the rows of a leaf, but not what the root says of it, except its size."""

    def edit(files: Files) -> None:
        leaf, count = files.leaf(kind), row_of(files.rows(), kind)["record_count"]
        files.edit_manifest(leaf, change)
        files.sized(leaf)
        put(kind, record_count=count)(files)

    return edit


def root_keys(**keys: str | None) -> Edit:
    return lambda files: files.edit_root(lambda rows: None, **keys)


def leaf_keys(kind: int, **keys: str | None) -> Edit:
    def edit(files: Files) -> None:
        leaf = files.leaf(kind)
        files.edit_manifest(leaf, lambda rows: None, **keys)
        files.sized(leaf)

    return edit


def metadata(change: Callable[[Any], object]) -> Edit:
    return lambda files: files.edit_metadata(change)


def columns(change: Callable[[pa.Table], pa.Table]) -> Edit:
    return lambda files: files.edit_table(files.root, change)


def bytes_of_root(change: Callable[[bytes], bytes]) -> Edit:
    def edit(files: Files) -> None:
        files.files[files.root] = change(files.files[files.root])

    return edit


# -- the metadata file

add(
    "format-version-5",
    "format-version",
    "The table says format version 5.",
    metadata(lambda m: m.update({"format-version": 5})),
)
add(
    "metadata-is-no-json",
    "format-version",
    "The metadata file ends in the middle.",
    lambda files: files.files.update({"metadata/v1.metadata.json": files.files["metadata/v1.metadata.json"][:400]}),
)
add(
    "current-snapshot-unknown",
    "snapshot-references",
    "current-snapshot-id names no snapshot.",
    metadata(lambda m: m.update({"current-snapshot-id": 999, "refs": {}})),
)
add(
    "ref-unknown",
    "snapshot-references",
    "A branch names no snapshot.",
    metadata(lambda m: m["refs"].update(dev={"snapshot-id": 999, "type": "branch"})),
)
add(
    "main-elsewhere",
    "snapshot-references",
    "Branch main is not at the current snapshot.",
    metadata(lambda m: m["refs"]["main"].update({"snapshot-id": m["snapshots"][0]["snapshot-id"]})),
    "remove-from-root",
)
add(
    "snapshot-id-twice",
    "snapshot-references",
    "Two snapshots have the same id.",
    metadata(lambda m: m["snapshots"].append(dict(m["snapshots"][0]))),
)
add(
    "two-roots",
    "one-root",
    "root-manifest and manifest-list name different files.",
    metadata(lambda m: head(m).update({"manifest-list": "metadata/other.avro"})),
)
add("no-root", "one-root", "A snapshot names no root.", metadata(lambda m: head(m).pop("root-manifest")))
add(
    "root-escapes",
    "location",
    "The location of the root leaves the table.",
    metadata(lambda m: head(m).update({"root-manifest": "../" + head(m)["root-manifest"]})),
)
add(
    "expression-id-twice",
    "expressions",
    "Two expressions have the same id.",
    metadata(lambda m: m["expressions"].append(dict(m["expressions"][0]))),
    "partition-bucket-truncate",
)
add(
    "expression-id-of-a-column",
    "expressions",
    "An expression has the id of a column.",
    metadata(lambda m: m["expressions"][0].update({"expr-id": 1})),
    "partition-bucket-truncate",
)
add(
    "expression-missing",
    "expression-links",
    "A transform of a partition spec has no expression.",
    metadata(lambda m: m.update({"expressions": m["expressions"][1:]})),
    "partition-bucket-truncate",
)
add(
    "next-row-id-too-low",
    "row-id-range",
    "next-row-id is not above all row ids.",
    metadata(lambda m: m.update({"next-row-id": m["next-row-id"] - 1})),
)
add(
    "added-rows-too-low",
    "row-id-range",
    "A new file has row ids beyond added-rows of its snapshot.",
    metadata(lambda m: head(m).update({"added-rows": 2})),
    "append-two-files",
)
add(
    "first-row-id-of-the-parent",
    "row-id-range",
    "A snapshot assigns row ids that its parent has assigned.",
    metadata(lambda m: head(m).update({"first-row-id": 0})),
    "append-to-root",
)
add(
    "sequence-number-of-the-parent",
    "sequence-order",
    "A snapshot has the sequence number of its parent.",
    metadata(lambda m: head(m).update({"sequence-number": 2})),
    "append-to-root",
)
add(
    "last-sequence-number-too-low",
    "sequence-order",
    "last-sequence-number is below that of a snapshot.",
    metadata(lambda m: m.update({"last-sequence-number": 1})),
    "append-to-root",
)


for key, text in (
    ("current-schema-id", "current-schema-id names no schema."),
    ("default-spec-id", "default-spec-id names no partition spec."),
    ("default-sort-order-id", "default-sort-order-id names no sort order."),
):
    add(f"{key}-unknown", "metadata-ids", text, metadata(lambda m, key=key: m.update({key: 7})))  # type: ignore[misc]
add(
    "snapshot-of-an-unknown-schema",
    "schema-of-snapshot",
    "schema-id of a snapshot names no schema.",
    metadata(lambda m: head(m).update({"schema-id": 7})),
)
add(
    "last-column-id-below-a-column",
    "last-column-id",
    "last-column-id is below the id of a column.",
    metadata(lambda m: m.update({"last-column-id": 0})),
)
add(
    "last-column-id-below-an-expression",
    "last-column-id",
    "last-column-id is below the id of an expression, so that a new column would get it.",
    metadata(lambda m: m.update({"last-column-id": 2})),
    "partition-bucket-truncate",
)


def summary(**values: str) -> Edit:
    """Set keys of the summary of the current snapshot."""
    return metadata(lambda m: head(m)["summary"].update({key.replace("_", "-"): v for key, v in values.items()}))


add("summary-of-other-rows", "summary", "total-records is not that of the tree.", summary(total_records="9"))
add(
    "summary-of-other-deletes",
    "summary",
    "total-delete-files is not that of its tree.",
    summary(total_delete_files="1"),
)
add(
    "summary-of-other-changes",
    "summary",
    "added-data-files is not what the snapshot added.",
    summary(added_data_files="2"),
    "append-to-root",
)
add("summary-without-operation", "summary", "operation is none of the four.", summary(operation="upsert"))
add(
    "summary-of-an-append-that-removes",
    "summary",
    "operation is append, and a data file was removed.",
    summary(operation="append"),
    "overwrite-in-root",
)


def with_list(files: Files) -> None:
    """The second V4 snapshot gets a manifest list, as in version 3."""
    lists = [place for place in files.files if "/snap-" in place]
    files.edit_metadata(lambda m: (head(m).pop("root-manifest"), head(m).update({"manifest-list": lists[-1]})))


add(
    "manifest-list-after-a-root",
    "no-manifest-list",
    "A snapshot after a V4 snapshot has a manifest list.",
    with_list,
    "upgrade-remove-from-avro-leaf",
)

# -- manifest files

add("root-is-no-parquet", "manifest-file", "The root is not a Parquet file.", bytes_of_root(lambda data: b"root" * 20))
add("root-cut-short", "manifest-file", "The root lacks its last bytes.", bytes_of_root(lambda data: data[:-9]))
add("root-format-version-3", "manifest-keys", "The root says format-version 3.", root_keys(format_version="3"))
add("root-without-format-version", "manifest-keys", "The root has no format-version.", root_keys(format_version=None))
add("root-without-content", "manifest-keys", "The root has no content.", root_keys(content=None))
add("root-content-data", "manifest-keys", "The content of the root is data.", root_keys(content="data"))
add(
    "leaf-content-root",
    "manifest-keys",
    "A leaf is a root: the tree has more than two levels.",
    leaf_keys(DATA_MANIFEST, content="root"),
)
add(
    "data-leaf-content-delete",
    "manifest-keys",
    "The content of a data leaf is delete.",
    leaf_keys(DATA_MANIFEST, content="delete"),
)
add(
    "delete-leaf-content-data",
    "manifest-keys",
    "The content of a delete leaf is data.",
    leaf_keys(DELETE_MANIFEST, content="data"),
)
add("root-with-schema-key", "removed-keys", "The root has the serialized schema as a key.", root_keys(schema="{}"))


def with_id(name: str, id_: int | None) -> Callable[[pa.Table], pa.Table]:
    """The table with another field id of a column."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        ids = None if id_ is None else {b"PARQUET:field_id": str(id_).encode()}
        return table.set_column(index, table.schema.field(index).with_metadata(ids), table.column(index))

    return change


def as_type(name: str, type_: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        return table.set_column(index, table.schema.field(index).with_type(type_), table.column(index).cast(type_))

    return change


add("record-count-has-another-id", "field-ids", "record_count has id 9999.", columns(with_id("record_count", 9999)))
add(
    "content-type-missing",
    "field-ids",
    "There is no content_type.",
    columns(lambda t: t.drop_columns(["content_type"])),
)
add(
    "version-info-missing",
    "field-ids",
    "There is no version_info.",
    columns(lambda t: t.drop_columns(["version_info"])),
)
add("column-without-id", "field-ids", "sort_order_id has no field id.", columns(with_id("sort_order_id", None)))
add(
    "two-columns-of-one-id",
    "field-ids",
    "Two columns have the id of location.",
    columns(with_id("referenced_file", 100)),
)
add("record-count-is-text", "field-ids", "record_count is a string.", columns(as_type("record_count", pa.string())))


def statistics_as(member: str, type_: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    """The table with another type of a member of the statistics of column id."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index("content_stats")
        stats = table.column(index).combine_chunks()
        owners = [
            _replaced(stats.field(n), member, type_) if owner.name == "id" else stats.field(n)
            for n, owner in enumerate(stats.type)
        ]
        fields = [owner.with_type(array.type) for owner, array in zip(stats.type, owners, strict=True)]
        column = pa.StructArray.from_arrays(owners, fields=fields, mask=stats.is_null())
        return table.set_column(index, table.schema.field(index).with_type(column.type), column)

    return change


def _replaced(owner: pa.StructArray, member: str, type_: pa.DataType) -> pa.StructArray:
    arrays = [owner.field(n).cast(type_) if f.name == member else owner.field(n) for n, f in enumerate(owner.type)]
    fields = [field.with_type(array.type) for field, array in zip(owner.type, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=owner.is_null())


add(
    "bound-is-of-another-type",
    "statistics-type",
    "The lower bound of a column of type long is a string.",
    columns(statistics_as("lower_bound", pa.string())),
)

# -- one entry

add("content-type-6", "content-type", "A root entry has content type 6.", put(DATA, content_type=6))
add(
    "data-leaf-lists-a-manifest",
    "content-type",
    "A data leaf lists a manifest.",
    leaf_row(DATA_MANIFEST, 1, content_type=3),
)
add(
    "data-leaf-lists-a-vector",
    "content-type",
    "A data leaf lists a deletion vector.",
    leaf_row(DATA_MANIFEST, 1, content_type=1),
)
add(
    "data-leaf-lists-a-manifest-vector",
    "content-type",
    "A leaf lists a manifest deletion vector.",
    leaf_row(DATA_MANIFEST, 1, content_type=5),
)
add(
    "delete-leaf-lists-a-data-file",
    "content-type",
    "A delete leaf lists a data file.",
    leaf_row(DELETE_MANIFEST, 0, content_type=0),
)
add("version-info-null", "status", "version_info of an entry is null.", put(DATA, version_info=None))
add("status-null", "status", "The status of an entry is null.", info(DATA, status=None))
add("status-3", "status", "The status of an entry is 3.", info(DATA, status=3))
add(
    "existing-without-sequence-number",
    "sequence-inherited",
    "An EXISTING data file has no sequence_number.",
    info(DATA, sequence_number=None),
)
add(
    "existing-leaf-without-sequence-numbers",
    "sequence-inherited",
    "An EXISTING manifest has no sequence numbers.",
    info(DATA_MANIFEST, sequence_number=None, file_sequence_number=None),
)
add(
    "deleted-without-file-sequence-number",
    "sequence-inherited",
    "A DELETED entry has no file_sequence_number.",
    info(DATA, status=DELETED, file_sequence_number=None),
)
add(
    "sequence-numbers-of-a-data-leaf-differ",
    "sequence-of-manifest",
    "The sequence numbers of a data manifest differ.",
    info(DATA_MANIFEST, sequence_number=0),
)
add(
    "sequence-numbers-of-a-delete-leaf-differ",
    "sequence-of-manifest",
    "The sequence numbers of a delete manifest differ.",
    info(DELETE_MANIFEST, file_sequence_number=9),
)
add("data-file-without-location", "location", "A data file has no location.", put(DATA, location=None))
add("manifest-without-location", "location", "A manifest has no location.", put(DELETE_MANIFEST, location=None))
add(
    "vector-without-location", "location", "A deletion vector in a Puffin file has no location.", put(DV, location=None)
)
add("location-escapes", "location", "A relative location leaves the table.", put(DATA, location="../t/data/D4.parquet"))
add(
    "location-with-a-dot",
    "location",
    "A relative location has a segment of one dot.",
    put(DATA, location="data/./D4.parquet"),
)
add("file-size-null", "file-size", "A file has no size.", put(DATA, file_size_in_bytes=None))
add("file-size-negative", "file-size", "A file has a negative size.", put(DATA_MANIFEST, file_size_in_bytes=-1))
add("file-format-unknown", "file-format", "The format of a data file is csv.", put(DATA, file_format="csv"))
add("data-file-is-puffin", "file-format", "The format of a data file is puffin.", put(DATA, file_format="puffin"))
add("vector-is-parquet", "file-format", "The format of a deletion vector is parquet.", put(DV, file_format="parquet"))
add("manifest-is-orc", "file-format", "The format of a manifest is orc.", put(DATA_MANIFEST, file_format="orc"))
add("record-count-null", "record-count", "record_count is null.", put(DATA, record_count=None))
add("record-count-negative", "record-count", "record_count is negative.", put(DATA, record_count=-1))
add("spec-id-null", "partition-spec", "partition_spec_id is null.", put(DATA, partition_spec_id=None))
add("spec-id-unknown", "partition-spec", "partition_spec_id names no spec.", put(DATA, partition_spec_id=7))
add(
    "data-vector-without-struct",
    "vector-struct",
    "deletion_vector of a data vector is null.",
    put(DV, deletion_vector=None),
)
add(
    "manifest-vector-without-struct",
    "vector-struct",
    "deletion_vector of a manifest vector is null.",
    put(MANIFEST_DV, location="metadata/v.puffin", file_size_in_bytes=50, deletion_vector=None),
)
add(
    "data-file-with-vector",
    "vector-struct",
    "A data file has a deletion_vector.",
    put(DATA, deletion_vector={"offset": 4, "size_in_bytes": 40, "inline_content": None}),
)
add(
    "manifest-with-vector",
    "vector-struct",
    "A manifest has a deletion_vector.",
    put(DATA_MANIFEST, deletion_vector=inline(1)),
)
add(
    "data-vector-inline",
    "inline-data-vector",
    "The vector of a data file is inline.",
    put(DV, location=None, file_size_in_bytes=None, deletion_vector=inline(1)),
)
add(
    "vector-of-nothing",
    "vector-place",
    "A vector is neither inline nor in a file.",
    put_in("deletion_vector", DV, offset=None, size_in_bytes=None),
)
add(
    "vector-without-size",
    "vector-place",
    "A vector has an offset and no size.",
    put_in("deletion_vector", DV, size_in_bytes=None),
)
add(
    "vector-without-offset",
    "vector-place",
    "A vector has a size and no offset.",
    put_in("deletion_vector", DV, offset=None),
)
add(
    "vector-offset-negative",
    "vector-place",
    "A vector has a negative offset.",
    put_in("deletion_vector", DV, offset=-4),
)
add(
    "vector-in-two-places",
    "vector-place",
    "A manifest vector is inline and in a file.",
    lambda files: files.edit_root(
        lambda rows: (
            row_of(rows, MANIFEST_DV).update(location=row_of(rows, DV)["location"], file_size_in_bytes=400),
            row_of(rows, MANIFEST_DV)["deletion_vector"].update(offset=4, size_in_bytes=42),
        )
    ),
)
add(
    "data-vector-without-file",
    "referenced-file",
    "The vector of a data file names no file.",
    put(DV, referenced_file=None),
)
add(
    "manifest-vector-without-leaf",
    "referenced-file",
    "A manifest vector names no manifest.",
    put(MANIFEST_DV, referenced_file=None),
)
add(
    "data-file-that-references",
    "referenced-file",
    "A data file has a referenced_file.",
    put(DATA, referenced_file="data/D5.parquet"),
)
add(
    "data-leaf-that-references",
    "referenced-file",
    "A data manifest has a referenced_file.",
    lambda files: files.edit_root(
        lambda rows: row_of(rows, DATA_MANIFEST).update(referenced_file=row_of(rows, DELETE_MANIFEST)["location"])
    ),
)
add(
    "manifest-without-stats",
    "manifest-stats",
    "A manifest has no manifest_stats.",
    put(DATA_MANIFEST, manifest_stats=None),
)
add(
    "manifest-stats-incomplete",
    "manifest-stats",
    "manifest_stats lacks a count.",
    put_in("manifest_stats", DELETE_MANIFEST, min_sequence_number=None),
)
add(
    "data-file-with-manifest-stats",
    "manifest-stats",
    "A data file has manifest_stats.",
    lambda files: files.edit_root(
        lambda rows: row_of(rows, DATA).update(manifest_stats=row_of(rows, DATA_MANIFEST)["manifest_stats"])
    ),
)
add(
    "equality-deletes-without-ids",
    "equality-ids",
    "An equality delete file has no equality_ids.",
    put(EQUALITY, equality_ids=None),
)
add("data-file-with-equality-ids", "equality-ids", "A data file has equality_ids.", put(DATA, equality_ids=[1]))
add(
    "equality-ids-of-no-column",
    "equality-columns",
    "An equality delete file names a column that the table never had.",
    put(EQUALITY, equality_ids=[1, 99]),
)
add("sort-order-unknown", "known-sort-order", "sort_order_id names no sort order.", put(DATA, sort_order_id=7))
add("sort-order-of-a-vector", "sort-order", "A deletion vector has a sort order.", put(DV, sort_order_id=0))
add("sort-order-of-a-manifest", "sort-order", "A manifest has a sort order.", put(DATA_MANIFEST, sort_order_id=0))
add("split-offsets-descend", "split-offsets", "split_offsets descend.", put(DATA, split_offsets=[40, 4]))
add(
    "row-id-of-a-delete-leaf",
    "first-row-id",
    "A delete manifest has a first_row_id.",
    put(DELETE_MANIFEST, first_row_id=0),
)
add("row-id-of-a-vector", "first-row-id", "A deletion vector has a first_row_id.", put(DV, first_row_id=0))
add(
    "row-id-of-equality-deletes",
    "first-row-id",
    "An equality delete file has a first_row_id.",
    put(EQUALITY, first_row_id=0),
)

# -- entries of one root

add("data-file-listed-twice", "unique-location", "A data file is listed twice.", copied(DATA))
add("manifest-listed-twice", "unique-location", "A manifest is listed twice.", copied(DATA_MANIFEST))
add(
    "data-and-equality-deletes-in-one-file",
    "unique-location",
    "A data file is also an equality delete file.",
    copied(DATA, content_type=EQUALITY, equality_ids=[1], first_row_id=None, sort_order_id=None),
)
add(
    "two-vectors-of-a-leaf",
    "one-manifest-vector",
    "A leaf has two live vectors.",
    copied(MANIFEST_DV, deletion_vector=inline(2)),
)
add("two-vectors-of-a-data-file", "one-data-vector", "A data file has two live vectors.", copied(DV))
add(
    "vector-of-an-absent-leaf",
    "vector-target",
    "A manifest vector applies to a manifest that the root lacks.",
    put(MANIFEST_DV, referenced_file="metadata/gone.parquet"),
)
add(
    "manifest-vector-of-a-data-file",
    "vector-target",
    "A manifest vector applies to a data file.",
    lambda files: files.edit_root(
        lambda rows: row_of(rows, MANIFEST_DV).update(referenced_file=row_of(rows, DATA)["location"])
    ),
)
add(
    "affinity-to-an-absent-leaf",
    "affinity",
    "A delete manifest is affiliated to a manifest that the root lacks.",
    put(DELETE_MANIFEST, referenced_file="metadata/gone.parquet"),
)
add(
    "affinity-to-a-delete-leaf",
    "affinity",
    "A delete manifest is affiliated to itself.",
    lambda files: files.edit_root(
        lambda rows: row_of(rows, DELETE_MANIFEST).update(referenced_file=row_of(rows, DELETE_MANIFEST)["location"])
    ),
)
add(
    "affinity-to-a-data-file",
    "affinity",
    "A delete manifest is affiliated to a data file.",
    lambda files: files.edit_root(
        lambda rows: row_of(rows, DELETE_MANIFEST).update(referenced_file=row_of(rows, DATA)["location"])
    ),
)

# -- vectors


def vector_bytes(change: Callable[[bytes], bytes]) -> Edit:
    return put_in("deletion_vector", MANIFEST_DV, inline_content=change(blob(1)))


def checked(body: bytes) -> bytes:
    """A blob with the right length and checksum around any body."""
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


add(
    "vector-checksum",
    "vector-bytes",
    "The checksum of a vector is wrong.",
    vector_bytes(lambda b: b[:-1] + bytes([b[-1] ^ 1])),
)
add(
    "vector-magic",
    "vector-bytes",
    "A vector does not begin with the magic bytes.",
    vector_bytes(lambda b: checked(b"\xd1\xd3\x39\x65" + b[8:-4])),
)
add(
    "vector-length",
    "vector-bytes",
    "The length of a vector is wrong.",
    vector_bytes(lambda b: b"\x00\x00\x00\x07" + b[4:]),
)
add("vector-cut-short", "vector-bytes", "A vector lacks its last bytes.", vector_bytes(lambda b: b[:-3]))
add(
    "vector-bitmap-damaged",
    "vector-bytes",
    "The bitmap of a vector is damaged, its checksum is right.",
    vector_bytes(lambda b: checked(b[4:20] + b"\x00\x00\x00\x00" + b[24:-4])),
)
add(
    "vector-cardinality",
    "vector-cardinality",
    "record_count of a vector is not its cardinality.",
    put(MANIFEST_DV, record_count=2),
)
add(
    "vector-position-too-large",
    "vector-position",
    "A vector has a position beyond the rows of its leaf.",
    put(MANIFEST_DV, deletion_vector=inline(3)),
)


def puffin(change: Callable[[bytes, int, int], bytes]) -> Edit:
    def edit(files: Files) -> None:
        row = row_of(files.rows(), DV)
        place, vector = row["location"], row["deletion_vector"]
        files.files[place] = change(files.files[place], vector["offset"], vector["size_in_bytes"])

    return edit


add(
    "puffin-vector-checksum",
    "vector-bytes",
    "The checksum of a vector in a Puffin file is wrong.",
    puffin(lambda d, offset, size: d[: offset + size - 1] + bytes([d[offset + size - 1] ^ 1]) + d[offset + size :]),
)
add(
    "puffin-vector-cardinality",
    "vector-cardinality",
    "record_count of a data vector is not its cardinality.",
    put(DV, record_count=2),
)
add(
    "puffin-footer-lists-another-blob",
    "puffin-blob",
    "The footer lists no blob at the offset of the vector.",
    puffin(lambda d, offset, size: d.replace(b'"offset":4', b'"offset":5')),
)

for part, old, new in (
    ("file", b"/data/D4.parquet", b"/data/D5.parquet"),
    ("cardinality", b'"cardinality":"1"', b'"cardinality":"2"'),
    ("type", b'"type":"deletion-vector-v1"', b'"type":"deletion-vector-v2"'),
):
    add(
        f"puffin-footer-with-another-{part}",
        "puffin-properties",
        f"The footer of a Puffin file has another {part} of the vector than its entry.",
        puffin(lambda d, offset, size, old=old, new=new: d.replace(old, new)),  # type: ignore[misc]
    )
add(
    "vector-older-than-its-file",
    "vector-age",
    "A deletion vector has a smaller sequence number than its data file, so that it does not apply.",
    info(DV, sequence_number=1),
)

# -- partition values and statistics of files


def stats(name: str, base: str, number: int = 0, kind: int = DATA, **values: object) -> tuple[Edit, str]:
    """Set statistics of an entry of a root, of a column or expression by its name; and the case that it is in."""

    def change(rows: list[Row]) -> None:
        row_of(rows, kind, number)["content_stats"][name].update(values)

    return lambda files: files.edit_root(change), base


def without_statistics(name: str) -> Edit:
    """Drop the statistics of a column or an expression from the root."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index("content_stats")
        column = table.column(index).combine_chunks()
        kept = [(field, column.field(n)) for n, field in enumerate(column.type) if field.name != name]
        fields, arrays = zip(*kept, strict=True)
        rest = pa.StructArray.from_arrays(list(arrays), fields=list(fields), mask=column.is_null())
        return table.set_column(index, table.schema.field(index).with_type(rest.type), rest)

    return columns(change)


add(
    "partition-value-missing",
    "partition-values",
    "There are no statistics of an identity partition.",
    without_statistics("city"),
    "partition-identity",
)
add(
    "partition-value-of-an-expression-missing",
    "partition-values",
    "There are no statistics of the expression of a partition field.",
    without_statistics("id_bucket"),
    "partition-by-expression-id",
)
add(
    "partition-value-null-without-nulls",
    "partition-values",
    "A partition value has no bound, and the counts say that it is not null.",
    *stats("city", "partition-identity", lower_bound=None, upper_bound=None, null_value_count=0),
)
add(
    "partition-value-null-of-a-column-with-values",
    "partition-values",
    "The bucket of a column is null, and the column has values.",
    *stats("id_bucket", "partition-by-expression-id", lower_bound=None, value_count=None, null_value_count=None),
)
add(
    "partition-value-of-two-bounds",
    "partition-bounds",
    "The bounds of an identity partition differ.",
    *stats("city", "partition-identity", upper_bound="Pisa"),
)
add(
    "partition-value-cut",
    "partition-bounds",
    "The bounds of an identity partition are cut.",
    *stats("city", "partition-identity", tight_bounds=False),
)
add(
    "partition-value-truncated",
    "partition-of-rows",
    "The value of an identity partition lacks its last letters.",
    *stats("city", "partition-identity", lower_bound="Llanfair", upper_bound="Llanfair", number=3),
)
add(
    "partition-value-of-another-bucket",
    "partition-of-rows",
    "The partition value is not the bucket of the rows.",
    *stats("id_bucket", "partition-by-expression-id", lower_bound=3),
)
add(
    "vector-of-another-partition",
    "vector-partition",
    "A deletion vector has another partition value than its data file.",
    *stats("city", "partition-of-a-vector", kind=DV, lower_bound="Rome", upper_bound="Rome"),
)
add(
    "lower-bound-of-a-file-too-high",
    "bounds",
    "The lower bound of a data file is above the value of a row.",
    *stats("id", "append-two-files", lower_bound=11),
)
add(
    "upper-bound-of-a-file-too-low",
    "bounds",
    "The upper bound of a data file is below the value of a row.",
    *stats("id", "append-two-files", upper_bound=11),
)
add(
    "bounds-claimed-to-be-tight",
    "bounds",
    "tight_bounds is true, and no row has the lower bound.",
    *stats("id", "append-two-files", lower_bound=9),
)
add(
    "null-count-of-a-file-wrong",
    "bounds",
    "null_value_count of a data file is not that of its rows.",
    *stats("id", "append-two-files", null_value_count=1),
)

# -- leaves

add(
    "leaf-with-fewer-rows",
    "leaf-rows",
    "A leaf has fewer rows than its entry says.",
    leaf_rows(DATA_MANIFEST, lambda rows: rows.pop()),
)
add(
    "leaf-with-more-rows",
    "leaf-rows",
    "A leaf has more rows than its entry says.",
    leaf_rows(DATA_MANIFEST, lambda rows: rows.append({**rows[0], "location": "data/D9.parquet"})),
)
add(
    "added-files-count-wrong",
    "leaf-counts",
    "added_files_count is not that of the leaf.",
    put_in("manifest_stats", DATA_MANIFEST, added_files_count=2, existing_files_count=1),
)
add(
    "added-rows-count-wrong",
    "leaf-counts",
    "added_rows_count is not that of the leaf.",
    put_in("manifest_stats", DATA_MANIFEST, added_rows_count=10),
)
add(
    "min-sequence-number-wrong",
    "leaf-counts",
    "min_sequence_number is above that of an entry.",
    put_in("manifest_stats", DATA_MANIFEST, min_sequence_number=2),
)


def bounds(**values: object) -> Edit:
    return lambda files: files.edit_root(lambda rows: row_of(rows, DATA_MANIFEST)["content_stats"]["id"].update(values))


add(
    "lower-bound-too-high",
    "leaf-statistics",
    "The lower bound of a manifest is above that of an entry.",
    bounds(lower_bound=11),
)
add(
    "upper-bound-too-low",
    "leaf-statistics",
    "The upper bound of a manifest is below that of an entry.",
    bounds(upper_bound=31),
)
add(
    "value-count-wrong",
    "leaf-statistics",
    "value_count of a manifest is not the sum of its entries.",
    bounds(value_count=8),
)


def leaf_of_another_spec(files: Files) -> None:
    files.edit_metadata(lambda m: m["partition-specs"].append({"spec-id": 1, "fields": []}))
    leaf_row(DATA_MANIFEST, 0, partition_spec_id=1)(files)


add(
    "leaf-of-another-spec",
    "leaf-spec",
    "An entry of a leaf has another partition spec than the leaf.",
    leaf_of_another_spec,
)
add(
    "vector-hides-a-deleted-row",
    "vector-of-dead-row",
    "A vector removes an entry that is DELETED in its leaf.",
    lambda files: (
        leaf_row(
            DATA_MANIFEST,
            1,
            version_info={"status": DELETED, "snapshot_id": None, "sequence_number": 1, "file_sequence_number": 1},
        )(files),
        put_in(
            "manifest_stats",
            DATA_MANIFEST,
            added_files_count=2,
            added_rows_count=6,
            deleted_files_count=1,
            deleted_rows_count=3,
        )(files),
    ),
)
add(
    "vector-of-another-leaf",
    "affinity-scope",
    "An affiliated delete manifest has a vector of another manifest's file.",
    leaf_row(DELETE_MANIFEST, 0, referenced_file="data/D5.parquet"),
)

# -- a snapshot and its parent


def parents_row(files: Files, kind: int) -> Row:
    """A row of the root of the parent snapshot."""
    parent = head(files.metadata)["parent-snapshot-id"]
    place = next(s["root-manifest"] for s in files.metadata["snapshots"] if s["snapshot-id"] == parent)
    return row_of(files.rows(place), kind)


def without(kind: int, number: int = 0) -> Edit:
    return lambda files: files.edit_root(lambda rows: rows.remove(row_of(rows, kind, number)))


def head_id(files: Files) -> int:
    return int(files.metadata["current-snapshot-id"])


add(
    "deleted-in-the-first-snapshot",
    "deleted-without-parent",
    "The first snapshot has a DELETED entry.",
    info(DATA, status=DELETED),
    "append-two-files",
)
add(
    "deleted-twice",
    "deleted-entry",
    "A DELETED entry is carried over to the next root.",
    lambda files: files.edit_root(lambda rows: rows.append(parents_row(files, DATA))),
    "remove-from-root",
)
add(
    "deleted-by-another-snapshot",
    "deleted-entry",
    "A DELETED entry has the id of another snapshot.",
    info(DATA, snapshot_id=1),
    "remove-file-with-vector-in-root",
)
add(
    "carried-entry-added",
    "carried-status",
    "An entry that was in the parent is ADDED.",
    lambda files: info(DATA, status=ADDED, snapshot_id=head_id(files), file_sequence_number=3)(files),
    "append-to-root",
)
add(
    "carried-leaf-added",
    "carried-status",
    "A leaf that was in the parent is ADDED.",
    info(DATA_MANIFEST, status=ADDED),
    "append-to-root",
)
add(
    "new-entry-existing",
    "carried-status",
    "A new data file is EXISTING.",
    info(DATA, 1, status=EXISTING),
    "append-to-root",
)
add(
    "new-vector-existing",
    "carried-status",
    "A new manifest vector is EXISTING.",
    info(MANIFEST_DV, status=EXISTING),
    "overwrite-in-leaf",
)
add(
    "carried-sequence-number",
    "carried-values",
    "An entry that was in the parent has another sequence number.",
    info(DATA, sequence_number=1),
    "append-to-root",
)
add(
    "carried-first-row-id",
    "carried-values",
    "An entry that was in the parent has other row ids.",
    put(DATA, first_row_id=6),
    "append-to-root",
)
add(
    "carried-snapshot-id",
    "carried-values",
    "An entry that was in the parent has another snapshot id.",
    lambda files: info(DATA, snapshot_id=head_id(files))(files),
    "append-to-root",
)
add(
    "carried-leaf-counts",
    "carried-values",
    "The counts of a carried manifest are reduced by its vector.",
    put_in("manifest_stats", DATA_MANIFEST, added_files_count=2),
    "remove-from-leaf",
)
add(
    "added-by-another-snapshot",
    "added-entry",
    "An ADDED entry has the id of another snapshot.",
    info(DATA, 1, snapshot_id=1),
    "append-to-root",
)
add(
    "added-with-another-sequence-number",
    "added-entry",
    "An ADDED entry has an older file sequence number.",
    info(DATA, 1, file_sequence_number=2),
    "append-to-root",
)


def new_file_in_compacted_leaf(files: Files) -> None:
    """The new file of the snapshot is in the compacted leaf, not in the root."""
    new, leaf = row_of(files.rows(), DATA), files.leaf()
    new["version_info"]["status"] = EXISTING
    files.edit_manifest(leaf, lambda rows: rows.append(new))
    files.sized(leaf)
    without(DATA)(files)
    put_in("manifest_stats", DATA_MANIFEST, existing_files_count=5, existing_rows_count=15)(files)
    bounds(upper_bound=72, value_count=15)(files)


add(
    "new-file-in-a-compacted-leaf",
    "compaction",
    "A new file is combined with existing entries into one manifest.",
    new_file_in_compacted_leaf,
    "compaction-during-append",
)


def leaf_deleted_with_its_files(files: Files) -> None:
    def edit(rows: list[Row]) -> None:
        row_of(rows, DATA_MANIFEST)["version_info"].update(status=DELETED, snapshot_id=head_id(files))
        rows.remove(row_of(rows, MANIFEST_DV))

    files.edit_root(edit)


add(
    "leaf-deleted-with-its-files",
    "leaf-deleted",
    "A leaf is removed as a whole.",
    leaf_deleted_with_its_files,
    "overwrite-in-leaf",
)
add(
    "vector-lacks-old-positions",
    "vector-grows",
    "A new vector lacks a position that the old one had.",
    put(MANIFEST_DV, 1, record_count=1, deletion_vector=inline(2)),
    "remove-from-leaf",
)
add(
    "old-vector-not-kept",
    "changes",
    "A vector changed, and the root does not have the old one as DELETED.",
    without(MANIFEST_DV),
    "remove-from-leaf",
)
add(
    "removal-not-recorded",
    "changes",
    "A data file of the parent is missing, and no entry says that it was removed.",
    without(DATA),
    "overwrite-in-root",
)
add(
    "orphan-vector",
    "orphan-vector",
    "A data file was removed, its deletion vector is live.",
    lambda files: files.edit_root(
        lambda rows: row_of(rows, DV)["version_info"].update(
            row_of([parents_row(files, DV)], DV)["version_info"] | {"status": EXISTING}
        )
    ),
    "remove-file-with-vector-in-root",
)
add(
    "row-ids-overlap",
    "row-ids",
    "Two data files have the same row ids.",
    put(DATA, 1, first_row_id=0),
    "append-two-files",
)
add(
    "entry-newer-than-its-snapshot",
    "sequence-order",
    "A sequence number is above that of the snapshot.",
    info(DATA, 1, sequence_number=9),
    "append-to-root",
)

# -- files


def damaged(file: bytes) -> bytes:
    """A Parquet file with another last byte of its first column."""
    column = pq.ParquetFile(pa.BufferReader(file)).metadata.row_group(0).column(0)
    end = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1
    return file[:end] + bytes([file[end] ^ 1]) + file[end + 1 :]


add("data-file-missing", "files", "A data file does not exist.", lambda files: files.files.pop("data/D4.parquet"))
add(
    "data-file-of-another-size",
    "files",
    "file_size_in_bytes is not the size of the file.",
    put(DATA, file_size_in_bytes=1),
)
add(
    "data-file-with-a-damaged-page",
    "files",
    "A byte in a page of a data file is not what was written; the size is right.",
    lambda files: files.files.update({"data/D4.parquet": damaged(files.files["data/D4.parquet"])}),
)
add(
    "data-file-with-fewer-rows",
    "rows",
    "record_count is not the number of rows of the file.",
    put(DATA, 1, record_count=2),
)
