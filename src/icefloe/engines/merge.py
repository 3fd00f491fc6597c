"""A MERGE as its author states it: the condition that joins a source with a table, and what happens to each row.

Names in the texts are qualified by ``t`` (or ``target``) for the table and ``s`` (or ``source``) for the source. A name
that only one of them has needs no qualifier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from icefloe.errors import InputError
from icefloe.expr.value.expressions import Value
from icefloe.expr.value.nodes import Call, Case, Node, Reference, walk

TARGET, SOURCE = "t", "s"
BOTH = frozenset({TARGET, SOURCE})
_ALIASES: Mapping[str, str] = {"t": TARGET, "target": TARGET, "s": SOURCE, "source": SOURCE}
_SIDES = {TARGET: "the table", SOURCE: "the source"}


class When(Enum):
    """The rows that a clause applies to."""

    MATCHED = "when matched"
    NOT_MATCHED = "when not matched"
    NOT_MATCHED_BY_SOURCE = "when not matched by source"

    @property
    def sides(self) -> frozenset[str]:
        """The sides whose columns such rows have."""
        return {When.MATCHED: BOTH, When.NOT_MATCHED: frozenset({SOURCE})}.get(self, frozenset({TARGET}))


class Action(Enum):
    """What a clause does with a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """An action for the rows for which ``condition`` is true, and no condition of an earlier clause was.

    ``assignments`` are the new values by column; none means all columns that the source has too.
    """

    when: When
    action: Action
    condition: Value | None = None
    assignments: Mapping[str, Value] | None = None

    def __str__(self) -> str:
        condition = "" if self.condition is None else f" and {self.condition}"
        return f"{self.when.value}{condition} {self.action.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """The joining condition of a merge, and its clauses in order.

    With ``evolves_schema`` columns of the source that clauses set and the table lacks are first added to the table.
    """

    on: Value
    clauses: tuple[Clause, ...]
    evolves_schema: bool = False

    def clauses_for(self, when: When) -> tuple[Clause, ...]:
        """The clauses for some rows."""
        return tuple(clause for clause in self.clauses if clause.when is when)

    def sets(self, name: str) -> bool:
        """Whether a clause sets the column ``name`` of the table to a value, if the source has the column too."""
        own = (name, f"{TARGET}.{name}")
        return any(
            clause.assignments is None or any(spelling in clause.assignments for spelling in own)
            for clause in self.clauses
            if clause.action is not Action.DELETE
        )

    def check(self) -> None:
        """InputError if the merge does nothing, or no row can reach one of its clauses."""
        if len(self.clauses) == 0:
            raise InputError(
                "merge: say what to do, such as when_matched_update_all() or when_not_matched_insert_all()"
            )
        for when in When:
            for before, after in pairwise(self.clauses_for(when)):
                if before.condition is None:
                    raise InputError(f"merge: no row reaches {str(after)!r}, because {str(before)!r} takes them all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The column names of the table and of the source, by which names in texts are resolved."""

    target: frozenset[str]
    source: frozenset[str]

    def resolve(self, value: Value, sides: frozenset[str]) -> Value:
        """The value with every name qualified by its side; ``sides`` are those that the rows have."""
        return Value(value.text, self._resolved(value.node, value.text, sides))

    def _resolved(self, node: Node, text: str, sides: frozenset[str]) -> Node:
        match node:
            case Reference():
                return self._reference(node, text, sides)
            case Call():
                return replace(node, arguments=tuple(self._resolved(part, text, sides) for part in node.arguments))
            case Case():
                return Case(
                    tuple(self._resolved(part, text, sides) for part in node.conditions),
                    tuple(self._resolved(part, text, sides) for part in node.results),
                    self._resolved(node.default, text, sides),
                )
            case _:
                return node

    def _reference(self, node: Reference, text: str, sides: frozenset[str]) -> Reference:
        side = _ALIASES.get(node.path[0].lower()) if len(node.path) > 1 else None
        if side is not None:
            column, path = node.path[1], node.path[1:]
            if side not in sides:
                raise InputError(f"merge: {text!r}: these rows have no columns of {_SIDES[side]}", value=text)
            if column not in self._columns(side):
                raise InputError(f"merge: {text!r}: {_SIDES[side]} has no column {column!r}", field=column)
            return Reference((side, *path))
        owners = [side for side in sorted(sides) if node.path[0] in self._columns(side)]
        if len(owners) == 2:
            name = node.name
            raise InputError(f"merge: {text!r}: both sides have {name!r}; write t.{name} or s.{name}", field=name)
        if len(owners) == 0:
            searched = " or ".join(_SIDES[side] for side in sorted(sides, reverse=True))
            raise InputError(f"merge: {text!r}: there is no column {node.name!r} in {searched}", field=node.name)
        return Reference((owners[0], *node.path))

    def _columns(self, side: str) -> frozenset[str]:
        return self.target if side == TARGET else self.source


def sides_of(node: Node) -> frozenset[str]:
    """The sides whose columns a resolved node reads."""
    return frozenset(part.path[0] for part in walk(node) if isinstance(part, Reference))


def columns_read(value: Value, side: str) -> frozenset[str]:
    """The columns of one side that a resolved value reads, by their own names."""
    return frozenset(part.path[1] for part in walk(value.node) if isinstance(part, Reference) and part.path[0] == side)
