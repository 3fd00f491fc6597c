"""Tables and entries that the codec tests share."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal as Dec

import pyarrow as pa

from icefloe.codecs.manifest.context import ManifestContext, manifest_context
from icefloe.model.arrow.conform import arrow_type
from icefloe.model.entries import ContentType, Status, column_key, entries, partition_key
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.partition.spec import UNPARTITIONED, Expression, PartitionField, PartitionSpec
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    Decimal,
    Field,
    Fixed,
    Struct,
    Type,
)

LOCATION = "file:///warehouse/db/t"
TYPES: tuple[tuple[str, Type], ...] = (
    ("flag", BOOLEAN),
    ("small", INT),
    ("id", LONG),
    ("ratio", FLOAT),
    ("price", DOUBLE),
    ("day", DATE),
    ("clock", TIME),
    ("seen", TIMESTAMP),
    ("ts", TIMESTAMPTZ),
    ("name", STRING),
    ("uid", UUID),
    ("raw", BINARY),
    ("amount", Decimal(9, 2)),
    ("wide", Decimal(30, 5)),
    ("code", Fixed(3)),
)
IDS = {name: number for number, (name, _) in enumerate(TYPES, start=1)}
NESTED = Field(16, "s", Struct((Field(17, "x", LONG),)))
SCHEMA = Schema(fields=(*(Field(IDS[name], name, type_) for name, type_ in TYPES), NESTED), schema_id=3)

MIXED = PartitionSpec(
    spec_id=1,
    fields=(
        PartitionField(source_id=IDS["name"], field_id=1000, name="name", transform="identity"),
        PartitionField(source_id=IDS["ts"], field_id=1001, name="ts_day", transform="day"),
        PartitionField(source_id=IDS["id"], field_id=1002, name="id_bucket", transform="bucket[16]"),
        PartitionField(source_id=IDS["price"], field_id=1003, name="price", transform="identity"),
        PartitionField(source_id=IDS["flag"], field_id=1004, name="flag_void", transform="void"),
    ),
)
EVERY_TYPE = PartitionSpec(
    spec_id=2,
    fields=tuple(
        PartitionField(source_id=IDS[name], field_id=1100 + IDS[name], name=f"p_{name}", transform="identity")
        for name, _ in TYPES
    ),
)
EXPRESSIONS = (
    Expression(expr_id=18, source_ids=(IDS["ts"],), transform="day", name="ts_day", partition_field_id=1001),
    Expression(expr_id=19, source_ids=(IDS["id"],), transform="bucket[16]", name="id_bucket", partition_field_id=1002),
)


def metadata(format_version: int = 4) -> TableMetadata:
    return TableMetadata(
        format_version=format_version,
        table_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1",
        location=LOCATION,
        last_updated_ms=0,
        last_column_id=19,
        schemas=(SCHEMA,),
        current_schema_id=3,
        specs=(UNPARTITIONED, MIXED, EVERY_TYPE),
        default_spec_id=1,
        last_partition_id=1200,
        expressions=EXPRESSIONS if format_version == 4 else (),
    )


def context(format_version: int = 4, **changes: object) -> ManifestContext:
    return replace(manifest_context(metadata(format_version)), **changes)  # type: ignore[arg-type]


ARROW_TYPES = {
    **{column_key(i): arrow_type(t) for i, t in context().types.items()},
    **{partition_key(i): arrow_type(t) for i, t in context().partition_types.items()},
}
UTC = dt.UTC
DAY = dt.date(2026, 11, 5)
VALUES: dict[str, object] = {
    "flag": True,
    "small": -7,
    "id": 2**40,
    "ratio": 0.25,
    "price": -1.5e300,
    "day": dt.date(1969, 12, 31),
    "clock": dt.time(23, 59, 59, 999999),
    "seen": dt.datetime(1969, 12, 31, 23, 59, 59, 1),
    "ts": dt.datetime(2026, 11, 5, 1, 2, 3, 4, tzinfo=UTC),
    "name": "Grüße 🧊",
    "uid": bytes(range(16)),
    "raw": b"\x00\xff",
    "amount": Dec("-1234567.89"),
    "wide": Dec("1234567890123456789012345.00001"),
    "code": b"abc",
}


def table(rows: list[dict[str, object]]) -> pa.Table:
    return entries(rows, ARROW_TYPES)


def data_file(number: int = 0, **changes: object) -> dict[str, object]:
    """A live data file without statistics of an unpartitioned table."""
    return {
        "content_type": int(ContentType.DATA),
        "location": f"{LOCATION}/data/{number:05d}.parquet",
        "file_format": "parquet",
        "format_version": 4,
        "status": int(Status.ADDED),
        "snapshot_id": 77,
        "sequence_number": 5,
        "file_sequence_number": 5,
        "partition_spec_id": 0,
        "record_count": 10,
        "file_size_in_bytes": 1000 + number,
        **changes,
    }


def column_stats(name: str, lower: object, upper: object, *, count: int = 10, nulls: int = 0) -> dict[str, object]:
    key = column_key(IDS[name])
    found = {f"lower_bound:{key}": lower, f"upper_bound:{key}": upper}
    return {**found, f"value_count:{key}": count, f"null_value_count:{key}": nulls}


def partition(field_id: int, value: object, *, count: int = 10, floating: bool = False) -> dict[str, object]:
    """The statistics of a partition value on a file row."""
    key = partition_key(field_id)
    nan = isinstance(value, float) and value != value
    bound = None if nan else value
    found: dict[str, object] = {f"lower_bound:{key}": bound, f"upper_bound:{key}": bound, f"value_count:{key}": count}
    found[f"null_value_count:{key}"] = count if value is None else 0
    return {**found, f"nan_value_count:{key}": count if nan else 0} if floating else found


def mixed_partition(
    name: object = "a", day: object = DAY, bucket: object = 3, price: object = 1.5, *, count: int = 10
) -> dict[str, object]:
    """The tuple of the spec MIXED."""
    return {
        "partition_spec_id": 1,
        **partition(1000, name, count=count),
        **partition(1001, day, count=count),
        **partition(1002, bucket, count=count),
        **partition(1003, price, count=count, floating=True),
    }
