"""Applies change data to a table: a merge by key in which a change wins over older ones.

Many changes of one key in one batch are reduced to the last one. A change applies only if its sequence is greater than
the one that the row stores, so late and repeated batches change nothing. A deleted row stays as a marked row with the
sequence of its delete: without it, a late change would bring the row back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from icefloe.engines.choose import engine_of
from icefloe.engines.work import IS_DELETE, ChangeKeys
from icefloe.env import Env
from icefloe.errors import InputError
from icefloe.expr.text.spark_sql import quoted
from icefloe.expr.value.expressions import Value
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import BOOLEAN
from icefloe.table.merge_builder import MergeBuilder

R = TypeVar("R")
DELETED_COLUMN = "is_deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeData:
    """The last change of each key, as the source of a merge by key."""

    source: Any
    sequence_by: str
    values: Mapping[str, str]  # set by a change that is no delete
    deleted_column: str | None  # none if no change is a delete

    def added_to(self, merge: MergeBuilder[R]) -> MergeBuilder[R]:
        """The merge with the clauses that apply the changes."""
        sequence = f"{quoted('t', self.sequence_by)}"
        newer = f"({sequence} IS NULL OR {_source(self.sequence_by)} > {sequence})"
        if self.deleted_column is None:
            return merge.when_matched_update(self.values, newer).when_not_matched_insert(self.values)
        is_delete = _source(IS_DELETE)
        deleted = {self.deleted_column: "true", self.sequence_by: _source(self.sequence_by)}
        merge = merge.when_matched_update(deleted, f"{newer} AND {is_delete}")
        merge = merge.when_matched_update({**self.values, self.deleted_column: "false"}, newer)
        return merge.when_not_matched_insert({**self.values, self.deleted_column: is_delete})


def change_data(
    data: Any,
    schema: Schema,
    env: Env,
    *,
    keys: Sequence[str],
    sequence_by: str,
    delete_when: str | Value | None,
    columns: Sequence[str] | None,
    deleted_column: str,
) -> ChangeData:
    """The changes in ``data`` of a table with this schema."""
    _check_table(schema, keys, sequence_by, deleted_column if delete_when is not None else None)
    engine = engine_of(data)
    condition = None if delete_when is None else engine.value(delete_when, env)
    opened, names = engine.source_columns(data, schema)
    by = ChangeKeys(keys=tuple(keys), sequence_by=sequence_by, delete_when=condition)
    ours = {field.name for field in schema.fields}
    set_columns = [name for name in names if name in ours] if columns is None else list(columns)
    return ChangeData(
        source=engine.latest_changes(opened, by),
        sequence_by=sequence_by,
        values={name: _source(name) for name in (*keys, *set_columns, sequence_by) if name != deleted_column},
        deleted_column=None if delete_when is None else deleted_column,
    )


def _source(name: str) -> str:
    return quoted("s", name)


def _check_table(schema: Schema, keys: Sequence[str], sequence_by: str, deleted_column: str | None) -> None:
    if isinstance(keys, str) or len(keys) == 0:
        raise InputError("apply_changes: give the key columns as a list, such as keys=['id']")
    fields = {field.name: field for field in schema.fields}
    for name in (*keys, sequence_by):
        if name not in fields:
            raise InputError(f"apply_changes: the table has no column {name!r}, which it must store", field=name)
    if deleted_column is None:
        return
    if deleted_column not in fields or fields[deleted_column].type != BOOLEAN:
        raise InputError(
            f"apply_changes: deletes need a boolean column {deleted_column!r} in the table, which marks deleted rows so"
            " that late changes do not bring them back; add it, or name another one by deleted_column=",
            field=deleted_column,
        )
