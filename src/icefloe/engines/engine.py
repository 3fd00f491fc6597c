"""What the table asks of an engine, and the one place that loads the Spark engine.

An engine moves rows and never commits: it writes data files and answers with entries, or finds rows by position.
pyspark is an optional extra and slow to import, so the Spark engine is loaded when Spark data first appears.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.deletes.deleted_rows import DeletedRows
from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.value.expressions import Value
from icefloe.formats.read.supported import check_types
from icefloe.io.file_io import FileIO
from icefloe.lazy import load_optional
from icefloe.model.entries import ContentType, of_type
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.metadata_columns import LINEAGE
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field
from icefloe.scan.tasks import Plan

Positions = Mapping[str, BitMap64]  # by data file location


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """The source of an upsert, checked: its rows, and a filter that every row with one of its keys satisfies.

    ``held`` lets go of what was made for it, when the upsert is done; ``index`` is what its engine finds rows by.
    """

    rows: Any
    on: tuple[str, ...]
    range: Expr
    index: Any = None
    held: ExitStack = field(default_factory=ExitStack)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What an upsert replaces, and the rows to write.

    ``rows`` are those of the source; with ``lineage`` they have these columns as well, which tell the ids of the rows
    that they replace.
    """

    positions: Positions
    rows: Any
    lineage: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """What is final of row lineage: a commit that is under way may give other ids and numbers from here on.

    Such an id or number is not written down with a row that moves; the row gets another one.
    """

    next_row_id: int
    last_sequence_number: int


class Engine(Protocol):
    """Something that moves rows."""

    def write(self, io: FileIO, rows: Any, metadata: TableMetadata, *, lineage: tuple[Field, ...] = ()) -> pa.Table:
        """Write rows to new data files of the table; their entries. They may have columns of ``lineage`` too."""
        ...

    def find_rows(self, io: FileIO, plan: Plan, drops: DeletedRows) -> dict[str, BitMap64]:
        """Live rows that match the plan's filter, by file; files without any are left out."""
        ...

    def keyed(self, rows: Any, metadata: TableMetadata, on: tuple[str, ...]) -> AbstractContextManager[Keyed]:
        """Check the source of an upsert and hold it for the duration; InputError when a key comes twice."""
        ...

    def find_keys(
        self, io: FileIO, plan: Plan, drops: DeletedRows, source: Keyed, *, settled: int | None = None
    ) -> Matched:
        """Live rows of the planned files whose key is one of the source's, and the source with their ids.

        Only row ids below ``settled`` are final, and are kept.
        """
        ...

    def write_key_deletes(self, io: FileIO, source: Keyed, metadata: TableMetadata) -> pa.Table:
        """Write equality delete files for the keys of a source; their entries. A key with a null deletes nothing."""
        ...

    def write_updated(
        self,
        io: FileIO,
        plan: Plan,
        drops: DeletedRows,
        found: Positions,
        values: Mapping[str, Value],
        metadata: TableMetadata,
        *,
        others: bool,
        horizon: Horizon | None = None,
    ) -> pa.Table:
        """Write the live rows at these positions again, with new values by column; the new entries.

        With ``others`` the other live rows of those files are written too, as they are. Rows keep their ids.
        """
        ...

    def write_survivors(
        self,
        io: FileIO,
        plan: Plan,
        drops: DeletedRows,
        found: Positions,
        metadata: TableMetadata,
        *,
        horizon: Horizon | None = None,
    ) -> pa.Table:
        """Write the live rows of the files named in ``found`` again, without those positions; the new entries.

        Rows keep their ids and the sequence numbers of their last change, as far as those are final.
        """
        ...


def lineage_of(plan: Plan) -> tuple[Field, ...]:
    """The columns that rows of a plan keep when they are moved: none if no file has row ids."""
    return LINEAGE if plan.tasks["first_row_id"].null_count < plan.files else ()


def check_readable(plan: Plan) -> None:
    """Refuse a plan whose rows Spark cannot tell yet, by name: rows would come back that the table does not have."""
    numbers = pc.unique(pc.list_flatten(plan.tasks["deletes"]))
    if len(numbers) > 0:
        check_no_equality_deletes(plan.deletes.take(numbers))
    check_defaults(plan.table_schema)
    check_types(plan.schema)


def check_no_equality_deletes(deletes: pa.Table) -> None:
    """Refuse equality deletes, which Spark does not apply yet."""
    found = deletes.filter(of_type(deletes, ContentType.EQUALITY_DELETES))
    if found.num_rows > 0:
        location = found["location"][0].as_py()
        raise UnsupportedError(
            f"equality delete file {location}: equality deletes are not applied on Spark yet; read the table in this"
            " process (to_arrow), or write its rows again without them",
            location=location,
        )


def check_defaults(schema: Schema) -> None:
    """Refuse initial defaults: rows written before such a column came would read as null."""
    for name, column in schema.by_name.items():
        if column.initial_default is not None:
            raise UnsupportedError(f"column {name!r} has an initial default, which is not applied yet", field=name)


def is_spark(value: object) -> bool:
    """Whether a value is a DataFrame or session of pyspark, told without importing it."""
    return type(value).__module__.split(".")[0] == "pyspark"


def spark_engine() -> Any:
    """The module ``icefloe.engines.spark.engine``."""
    return load_optional("icefloe.engines.spark.engine", needed_by="the Spark engine")
