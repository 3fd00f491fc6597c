"""The changes between two snapshots of a table: of its rows, and of its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.engines.choose import engine_for
from icefloe.engines.work import ChangeRequest
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.lazy import load_optional
from icefloe.model.schema.metadata_columns import DELETED
from icefloe.model.text.text_checks import listed
from icefloe.scan.changes.file_differences import FileDifferences, file_differences
from icefloe.scan.changes.pairing import check_row_ids, update_pairs
from icefloe.scan.changes.plan import CHANGE_COLUMNS, ChangePlan
from icefloe.scan.changes.snapshot_range import snapshot_range
from icefloe.scan.metadata_filter import tested_metadata_columns
from icefloe.scan.select import Point
from icefloe.table.held_table import HeldTable


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Changes:
    """The rows that changed between two snapshots; nothing is read before one of the ``to_`` methods is called.

    The columns are those of the table, then ``_change_type`` (``insert``, ``delete``, ``update_before`` or
    ``update_after``), ``_change_ordinal`` (0 for the first commit that may have changed rows) and
    ``_commit_snapshot_id``. The snapshots of a transaction are one commit, with the id of the last one.

    >>> import icefloe, pyarrow as pa
    >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.feed", schema="id bigint, city string")
    >>> first = t.append(pa.table({"id": [1, 2], "city": ["Oslo", "Rome"]}))
    >>> result = t.update({"city": "'Bern'"}, where="id = 2")
    >>> rows = t.changes(since=first.snapshot_id).to_arrow()
    >>> rows.select(["id", "city", "_change_type"]).to_pylist() # doctest: +NORMALIZE_WHITESPACE
    [{'id': 2, 'city': 'Rome', '_change_type': 'delete'},
     {'id': 2, 'city': 'Bern', '_change_type': 'insert'}]
    """

    request: ChangeRequest
    spark: Any = None  # a session that counts, and that ``to_spark`` uses if it is given none

    def plan(self) -> ChangePlan:
        """The files to read, by snapshot, with their number and size; no data file is read."""
        return self.request.plan()

    def to_arrow(self) -> pa.Table:
        """The changes as one Arrow table, ordered by snapshot."""
        return self.to_arrow_batch_reader().read_all()

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The changes as a stream of Arrow batches, ordered by snapshot."""
        reader: pa.RecordBatchReader = engine_for(None).read_changes(self.request)
        return reader

    def to_pandas(self) -> Any:
        """The changes as a pandas DataFrame."""
        load_optional("pandas", needed_by="to_pandas()")
        return self.to_arrow().to_pandas()

    def to_spark(self, spark: Any = None) -> Any:
        """The changes as a Spark DataFrame, read by Spark's own reader, in no particular order."""
        session = self.spark if spark is None else spark
        if session is None:
            raise InputError("to_spark() needs a session: to_spark(spark), or changes(..., spark=spark)")
        return engine_for(session).read_changes(self.request)

    def count(self) -> int:
        """The number of changed rows; the two rows of an update count both."""
        if self.spark is not None:
            return int(self.to_spark().count())
        return sum(batch.num_rows for batch in self.to_arrow_batch_reader())

    def __repr__(self) -> str:
        request = self.request
        between, metadata = request.between, request.base.metadata
        start = "the first snapshot on" if between.since is None else f"snapshot {between.since.snapshot_id}"
        end = "" if between.until is None else f" to snapshot {between.until.snapshot_id}"
        options = [name for name, given in (("net", request.net), ("images", request.pairs is not None)) if given]
        shown = "" if len(options) == 0 else f", {' and '.join(options)}"
        name = metadata.location if request.base.name is None else request.base.name
        return f"Changes({name} from {start}{end}, {len(between.changing)} commits that may change rows{shown})"


class ChangeFeeds(HeldTable):
    """The methods of a table that read the changes between two snapshots.

    Both read the state that this object holds. ``since`` is exclusive and ``until`` inclusive. Each is a snapshot id,
    the name of a branch or tag, or a time with a time zone, which means the snapshot that was current then.
    Without ``since`` the history is read from the first snapshot on, without ``until`` up to the current one.
    """

    def changes(
        self,
        since: Point | None = None,
        until: Point | None = None,
        *,
        net: bool = False,
        images: bool = False,
        columns: Iterable[str] | None = None,
        where: str | Expr | None = None,
        keys: Sequence[str] | None = None,
        spark: Any = None,
    ) -> Changes:
        """The rows that were inserted and deleted between two snapshots, read with the schema of ``until``.

        Rows that were only copied, by copy-on-write or by a compaction, are no change. With ``images`` the rows before
        and after an update have the types ``update_before`` and ``update_after``. They are paired by ``keys``, else by
        row ids if the table has them (format version 3), else by the identifier fields of the schema. With ``net`` all
        snapshots are folded into one change. ``where`` selects rows: a row that begins to match is an insert.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.changes", schema="id bigint, n int")
        >>> first = t.append(pa.table({"id": [1, 2], "n": [10, 20]}))
        >>> result = t.update({"n": "n + 1"}, where="id = 1")
        >>> result = t.delete("id = 2")
        >>> changes = t.changes(since=first.snapshot_id, images=True, keys=["id"])
        >>> [(row["_change_type"], row["id"], row["n"]) for row in changes.to_arrow().to_pylist()]
        [('update_before', 1, 10), ('update_after', 1, 11), ('delete', 2, 20)]
        """
        base = self._pointer.held()
        between = snapshot_range(base.metadata, since, until)
        taken = [name for name in CHANGE_COLUMNS if name in between.schema.by_name]
        if len(taken) > 0:
            raise InputError(
                f"table {self.name} has a column {taken[0]!r}, which is the name of a column of changes; rename it",
                field=taken[0],
            )
        chosen = None if columns is None else listed(columns, "columns")
        filter_ = parse_filter(where)
        tested = tested_metadata_columns(filter_, between.schema)
        if len(tested) > 0 or (chosen is not None and DELETED.name in chosen):
            name = DELETED.name if len(tested) == 0 else tested[0]
            raise InputError(f"changes cannot be selected by the metadata column {name!r}", field=name)
        pairs = update_pairs(base.metadata, between.schema, keys) if images else None
        if net and pairs is not None and len(pairs.keys) == 0:
            check_row_ids(base.metadata, between)
        return Changes(
            request=ChangeRequest(base=base, between=between, filter=filter_, columns=chosen, net=net, pairs=pairs),
            spark=spark,
        )

    def file_changes(
        self, since: Point | None = None, until: Point | None = None, *, net: bool = False
    ) -> FileDifferences:
        """The data files and deletes that were added and removed between two snapshots, as Arrow tables.

        With ``net`` a file that was added and removed again is left out. No data file is opened; ``files_opened``
        counts the manifests that were.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.file_changes", schema="id bigint", format_version=4)
        >>> first = t.append(pa.table({"id": [1, 2]}))
        >>> result = t.append(pa.table({"id": [3]}))
        >>> t.file_changes(since=first.snapshot_id)
        file changes of 1 snapshot: data files +1 -0, deletes +0 -0; 1 roots and 0 leaf manifests opened
        """
        base = self._pointer.held()
        return file_differences(base.store, base.metadata, snapshot_range(base.metadata, since, until), net=net)
