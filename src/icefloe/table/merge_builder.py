"""Builds a merge clause by clause, and reports what it did.

>>> import icefloe, pyarrow as pa
>>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.merge", schema="id bigint, note string")
>>> result = t.append(pa.table({"id": [1, 2, 3], "note": ["a", "b", "c"]}))
>>> changes = pa.table({"id": [2, 3, 4], "note": ["B", "", "d"], "op": ["U", "D", "U"]})
>>> merge = t.merge(changes, on="t.id = s.id").when_matched_delete("s.op = 'D'").when_matched_update_all()
>>> result = merge.when_not_matched_insert_all().execute()
>>> result.rows_inserted, result.rows_updated, result.rows_deleted
(1, 1, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, Self, TypeVar

from icefloe.commit.phases import NO_PHASES, Phases
from icefloe.commit.result import CommitResult
from icefloe.engines.engine import Engine, MergedRows
from icefloe.engines.merge_plan import SOURCE, TARGET, Action, Clause, Merge, When
from icefloe.env import Env
from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value
from icefloe.expr.value.nodes import Call, Reference
from icefloe.model.text.figures import Figures

R = TypeVar("R")
Values = Mapping[str, str | Value]


class MergeBuilder(Generic[R]):
    """The clauses of a merge; the first clause whose condition is true for a row applies to it.

    Texts name columns as ``t.id`` (of the table) and ``s.id`` (of the source).
    """

    def __init__(
        self, on: str | Value | Sequence[str], run: Callable[[Merge, int | None], R], engine: Engine, env: Env
    ) -> None:
        now = env.now_ms()
        self._env = replace(env, now_ms=lambda: now)  # the same time in all texts
        self._engine = engine
        self._run = run
        self._merge = Merge(on=self._joined(on), clauses=())

    def when_matched_update(self, values: Values, condition: str | Value | None = None) -> Self:
        """Set columns of rows that match a row of the source; values may use the columns of both."""
        return self._and(When.MATCHED, Action.UPDATE, condition, values)

    def when_matched_update_all(self, condition: str | Value | None = None) -> Self:
        """Set all columns that the source has too to its values; other columns keep their values."""
        return self._and(When.MATCHED, Action.UPDATE, condition)

    def when_matched_delete(self, condition: str | Value | None = None) -> Self:
        """Delete rows that match a row of the source."""
        return self._and(When.MATCHED, Action.DELETE, condition)

    def when_not_matched_insert(self, values: Values, condition: str | Value | None = None) -> Self:
        """Add rows of the source that match no row of the table; columns without a value get their default or null."""
        return self._and(When.NOT_MATCHED, Action.INSERT, condition, values)

    def when_not_matched_insert_all(self, condition: str | Value | None = None) -> Self:
        """Add rows of the source that match no row of the table, with the columns that both have."""
        return self._and(When.NOT_MATCHED, Action.INSERT, condition)

    def when_not_matched_by_source_update(self, values: Values, condition: str | Value | None = None) -> Self:
        """Set columns of rows that match no row of the source; values may use the columns of the table."""
        return self._and(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def when_not_matched_by_source_delete(self, condition: str | Value | None = None) -> Self:
        """Delete rows that match no row of the source."""
        return self._and(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition)

    def with_schema_evolution(self) -> Self:
        """Add the columns that clauses set from the source and the table lacks, in the commit of the merge.

        A clause for all columns sets all columns of the source. New columns are null in rows that the merge does not
        write. The types of columns that the table has do not change.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.evolving", schema="id bigint")
        >>> merge = t.merge(pa.table({"id": [1], "note": ["new"]}), on=["id"]).with_schema_evolution()
        >>> result = merge.when_not_matched_insert_all().execute()
        >>> t.scan().to_arrow().to_pylist()
        [{'id': 1, 'note': 'new'}]
        """
        self._merge = replace(self._merge, evolves_schema=True)
        return self

    def execute(self, *, retries: int | None = None) -> R:
        """Run the merge as one snapshot, or without one if nothing changes.

        With ``retries`` a merge that conflicts with another commit is run again on the newest state, up to that many
        times.
        """
        self._merge.check()
        return self._run(self._merge, retries)

    def _and(self, when: When, action: Action, condition: str | Value | None, values: Values | None = None) -> Self:
        if values is not None and len(values) == 0:
            raise InputError(f"merge: {when.value} {action.value}: give the value of at least one column")
        clause = Clause(
            when=when,
            action=action,
            condition=None if condition is None else self._engine.value(condition, self._env),
            assignments=None
            if values is None
            else {name: self._engine.value(value, self._env) for name, value in values.items()},
        )
        self._merge = replace(self._merge, clauses=(*self._merge.clauses, clause))
        return self

    def _joined(self, on: str | Value | Sequence[str]) -> Value:
        """The joining condition; a list of columns means that they are equal."""
        if isinstance(on, (str, Value)):
            return self._engine.value(on, self._env)
        if len(on) == 0:
            raise InputError("merge: give a condition such as on='t.id = s.id', or the key columns as a list")
        pairs = [Call("=", (Reference((TARGET, name)), Reference((SOURCE, name)))) for name in on]
        text = " AND ".join(f"t.{name} = s.{name}" for name in on)
        return Value(text, pairs[0] if len(pairs) == 1 else Call("and", tuple(pairs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult(Figures):
    """What a merge did.

    >>> MergeResult(table="db.t", snapshot_id=7, rows_inserted=1)  # doctest: +NORMALIZE_WHITESPACE
    merge db.t: snapshot 7, 1 rows inserted, 0 updated, 0 deleted, read 0 files and skipped 0,
    +0 -0 files (0 bytes), 0.000 s
    """

    table: str
    snapshot_id: int | None
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_copied: int = 0  # rows that were only copied to another file
    files_read: int = 0
    files_skipped: int = 0  # by their statistics no row of them can match
    files_added: int = 0
    files_removed: int = 0
    vectors_added: int = 0
    data_bytes_written: int = 0
    metadata_files_written: int = 0
    metadata_bytes_written: int = 0
    attempts: int = 1
    runs: int = 1  # of the whole merge: one more after every conflict
    seconds: float = 0.0
    phases: Phases = NO_PHASES
    already_committed: bool = False  # by an earlier run with the same idempotency key, as ``snapshot_id``

    def __repr__(self) -> str:
        phases = "" if self.phases == NO_PHASES else f" ({self.phases})"
        seen = f"read {self.files_read} files and skipped {self.files_skipped}"
        if self.already_committed:
            return f"merge {self.table}: already committed as snapshot {self.snapshot_id}"
        if self.snapshot_id is None:
            return f"merge {self.table}: nothing to do, no snapshot made, {seen}, {self.seconds:.3f} s{phases}"
        rows = f"{self.rows_inserted} rows inserted, {self.rows_updated} updated, {self.rows_deleted} deleted"
        files = f"+{self.files_added} -{self.files_removed} files ({self.data_bytes_written} bytes)"
        return f"merge {self.table}: snapshot {self.snapshot_id}, {rows}, {seen}, {files}, {self.seconds:.3f} s{phases}"


def merge_result(landed: CommitResult, merged: MergedRows | None, *, seconds: float) -> MergeResult:
    """The result of a merge: the figures of its commit, and its row counts unless an earlier run has committed it."""
    figures = {each.name: getattr(landed, each.name) for each in fields(MergeResult) if hasattr(landed, each.name)}
    counts = {"rows_deleted": 0}
    if merged is not None:
        names = ("rows_inserted", "rows_updated", "rows_deleted")
        counts = {name: getattr(merged, name) for name in names}
    return MergeResult(**{**figures, **counts, "seconds": seconds})
