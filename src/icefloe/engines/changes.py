"""Change data: what an engine needs to reduce many changes of a key to the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value

IS_DELETE = "_icefloe_is_delete"  # the column of the latest changes that says whether a change is a delete


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeKeys:
    """The columns of changes that identify a row and order the changes of a row, and the condition of a delete."""

    keys: tuple[str, ...]
    sequence_by: str
    delete_when: Value | None = None

    def check(self, columns: Sequence[str]) -> None:
        """InputError if the changes lack a column."""
        for name in (*self.keys, self.sequence_by):
            if name not in columns:
                raise InputError(f"apply_changes: the changes have no column {name!r}", field=name)


def ambiguous(key: object, sequence_by: str, sequence: object) -> InputError:
    """The error for two different last changes of one key."""
    return InputError(
        f"apply_changes: the key {key} has different changes with {sequence_by} = {sequence}; keep one of them", key=key
    )
