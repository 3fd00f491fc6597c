"""Scans: a filter and columns on one snapshot, and methods that return the rows."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.engines.choose import check_session, engine_for
from icefloe.engines.work import ScanRequest
from icefloe.errors import InputError, UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.expr.prune.boxes import Box, bind_box
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.lazy import load_optional
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.model.schema.metadata_columns import DELETED
from icefloe.model.schema.schema import Schema
from icefloe.model.text.text_checks import listed
from icefloe.scan.metadata_filter import tested_metadata_columns
from icefloe.scan.plan import selected
from icefloe.scan.routes import finds_columns
from icefloe.scan.tasks import Plan
from icefloe.scan.trace import explain


class Scan:
    """What to read of a snapshot; nothing is read before one of the ``to_`` methods is called.

    Columns are those of the table and ``_file``, ``_pos``, ``_partition``, ``_spec_id``, and from format version 3 on
    ``_row_id`` and ``_last_updated_sequence_number``; the filter may test them too. Fields of structs are selected by
    their full names, such as ``who.name``: the struct then has only these fields.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string")
    >>> _ = t.append(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
    >>> t.scan("id > 1", columns=["note"]).to_arrow().to_pylist()
    [{'note': 'b'}, {'note': 'c'}]
    >>> t.scan("id > 99").plan().files
    0
    >>> nested = cat.create_table("db.people", schema="who struct<name: string, age: int>")
    >>> _ = nested.append(pa.table({"who": [{"name": "Ada", "age": 36}, None]}))
    >>> nested.scan(columns=["who.age"]).to_arrow().to_pylist()
    [{'who': {'age': 36}}, {'who': None}]
    """

    def __init__(
        self,
        base: Base,
        snapshot: Snapshot | None,
        where: str | Expr | None,
        columns: Iterable[str] | None,
        schema: Schema | None = None,
    ) -> None:
        self._request = ScanRequest(
            base=base,
            snapshot=snapshot,
            filter=_on_columns(parse_filter(where), base),
            columns=None if columns is None else listed(columns, "columns"),
            schema=schema,
        )

    def near(self, column: str, *, x_min: float, y_min: float, x_max: float, y_max: float) -> Scan:
        """The scan without files whose shapes in a geometry or geography column are all outside a box.

        Files are skipped by the bounding boxes in the metadata. Rows of the other files are not tested, so shapes
        outside the box are returned too: filter them with a spatial function. For a geography, ``x_min`` greater than
        ``x_max`` is a box around the antimeridian.

        >>> import icefloe, struct, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.near", schema="id bigint, place geometry", format_version=4)
        >>> for id_, (x, y) in enumerate([(10.75, 59.91), (12.5, 41.9)]):
        ...     point = struct.pack("<BIdd", 1, 1, x, y)
        ...     result = t.append(pa.table({"id": [id_], "place": pa.array([point], pa.binary())}))
        >>> scan = t.scan().near("place", x_min=5, y_min=55, x_max=15, y_max=65)
        >>> scan.plan().files, scan.to_arrow()["id"].to_pylist()
        (1, [0])
        """
        box = Box(column=column, x_min=x_min, y_min=y_min, x_max=x_max, y_max=y_max)
        bind_box(box, self._request.table_schema)
        nearer = copy(self)
        nearer._request = replace(self._request, boxes=(*self._request.boxes, box))
        return nearer

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; none for a table that was never written."""
        return self._request.snapshot

    @property
    def schema(self) -> Schema:
        """The columns that the scan returns."""
        request = self._request
        base = request.base
        return selected(base.store, base.metadata, request.table_schema, request.columns, base.name)

    def plan(self, more: Expr = ALWAYS_TRUE, *, trace: bool = False) -> Plan:
        """The files to read; ``more`` is another filter, such as one that Spark pushes down.

        With ``trace`` the plan also lists why each manifest and file was kept or skipped, as an Arrow table.
        """
        return self._request.plan(more, trace=trace)

    def explain(self) -> str:
        """Which manifests and files the scan reads or skips, and why, as text; no data file is read.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.explain", schema="id bigint, city string", partition_by=["city"])
        >>> result = t.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
        >>> print(t.scan("city = 'Oslo' and id < 9").explain())  # doctest: +ELLIPSIS
        snapshot ... (append, ...+00:00) of memory://.../docs/explain
        filter: city = 'Oslo' AND id < 9
        manifests: 1 read (... bytes), 0 skipped (0 bytes)
        data files: 1 to read (1 rows, ... bytes), 1 skipped (... bytes)
        deletes: 0 delete files and 0 deletion vectors to apply
        manifest kept (1, ... bytes): may match
          memory://...
        file kept (1, ... bytes): all rows match
          memory://.../city=Oslo/....parquet
        file skipped (1, ... bytes): partition: city = 'Oslo'
          memory://.../city=Rome/....parquet
        """
        native = finds_columns(self._request.base.metadata.schemas, self._request.table_schema)
        return explain(self.plan(trace=True), self.snapshot, self._request.filter, native=native)

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table."""
        return self.to_arrow_batch_reader().read_all()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches in a fixed order; a limited number of bytes is read ahead."""
        reader: pa.RecordBatchReader = engine_for(None).read(self._request)
        return reader

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        load_optional("pandas", needed_by="to_pandas()")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return load_optional("polars", needed_by="to_polars()").from_arrow(self.to_arrow())

    def to_duckdb(self, table_name: str, connection: Any = None) -> Any:
        """The rows as a table of this name in DuckDB: in ``connection``, or else in a new one, which is returned."""
        connection = load_optional("duckdb", needed_by="to_duckdb()").connect() if connection is None else connection
        connection.register(table_name, self.to_arrow())
        return connection

    def to_spark(
        self, spark: Any, *, inspect_files: bool = False, nanoseconds: Literal["microseconds"] | None = None
    ) -> Any:
        """The rows as a Spark DataFrame, read by Spark's own Parquet reader.

        Files are chosen when a query runs, with the query's own filters. How files are read is decided before, by the
        summary of the snapshot and the properties of the table; a query fails if it meets a file that these do not
        show. With ``inspect_files`` the files are looked at instead.

        Spark has no timestamps of nanoseconds, so such columns are refused. With ``nanoseconds="microseconds"`` they
        are read in microseconds; the rest is cut off. The filter of the scan still compares nanoseconds.
        """
        if nanoseconds not in (None, "microseconds"):
            raise InputError(f"nanoseconds={nanoseconds!r}: give 'microseconds' or nothing")
        check_session(spark)
        request = replace(
            self._request, inspect_files=inspect_files, truncates_nanoseconds=nanoseconds == "microseconds"
        )
        return engine_for(spark).read(request)

    def count(self) -> int:
        """The number of rows; of files in which every row matches, only the deletes are read."""
        return engine_for(None).count(self._request)


def request_of(scan: Scan) -> ScanRequest:
    """What a scan passes to an engine."""
    return scan._request


def _on_columns(filter_: Expr, base: Base) -> Expr:
    """The filter; UnsupportedError if it tests ``_deleted``, for scans without it do not read deleted rows."""
    if DELETED.name in tested_metadata_columns(filter_, base.metadata.schema):
        raise UnsupportedError(
            f"a scan cannot be filtered by the metadata column {DELETED.name!r}; select it, and filter what comes back",
            field=DELETED.name,
        )
    return filter_
