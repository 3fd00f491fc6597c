"""A MERGE, independent of the engine: its condition and clauses, and how their names and values are resolved.

Names in the texts are qualified by ``t`` (or ``target``) for the table and ``s`` (or ``source``) for the source. A name
that only one of them has needs no qualifier. A plan has resolved names, the equalities of the joining condition and the
rest of it, and for every clause the values of the columns that it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr, conjunction, disjunction
from icefloe.expr.value.expressions import Value
from icefloe.expr.value.implied_filter import implied_filter
from icefloe.expr.value.nodes import Call, Case, Node, Reference, walk
from icefloe.expr.value.struct_fields import column_values, path_of
from icefloe.model.schema.schema import Schema, repeated

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """An equality of the joining condition: a value of the table and a value of the source."""

    target: Value
    source: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """A merge into a table of ``schema``; references of its values start with ``TARGET`` or ``SOURCE``.

    A row of the table matches a row of the source if all ``keys`` are equal and ``condition`` is true. The clauses have
    assignments for every column that they write: an update assigns all columns of the table.
    """

    schema: Schema
    keys: tuple[KeyPair, ...]
    condition: Value | None
    clauses: tuple[Clause, ...]

    @classmethod
    def of(cls, merge: Merge, schema: Schema, source_columns: Sequence[str]) -> MergePlan:
        """Resolve a merge; InputError if it does nothing, or a name cannot be resolved."""
        merge.check()
        twice = repeated(source_columns)
        if len(twice) > 0:
            raise InputError(f"merge: two columns of the source are named {twice[0]!r}", field=twice[0])
        resolver = _Resolver(schema, source_columns)
        clauses = tuple(resolver.clause(clause) for clause in merge.clauses)
        keys, condition = _split(resolver.names.resolve(merge.on, BOTH))
        return cls(schema=schema, keys=keys, condition=condition, clauses=clauses)

    def clauses_for(self, when: When) -> list[tuple[int, Clause]]:
        """The clauses for some rows, with their indices in ``clauses``."""
        return [(index, clause) for index, clause in enumerate(self.clauses) if clause.when is when]

    def table_filter(self, key_filter: Expr) -> Expr:
        """A filter that every row of the table satisfies that the merge may change.

        ``key_filter`` is one that every row satisfies that has the keys of a row of the source.
        """
        implied = ALWAYS_TRUE if self.condition is None else self._implied(self.condition)
        parts = [conjunction([key_filter, implied])]
        for _, clause in self.clauses_for(When.NOT_MATCHED_BY_SOURCE):
            parts.append(ALWAYS_TRUE if clause.condition is None else self._implied(clause.condition))
        return disjunction(parts)

    def _implied(self, condition: Value) -> Expr:
        return implied_filter(condition.node, self.schema, alias=TARGET)

    @property
    def deciding_columns(self) -> frozenset[str]:
        """The columns of the table that decide which clause applies to a row."""
        conditions = [self.condition, *(clause.condition for clause in self.clauses)]
        keys = [key.target for key in self.keys]
        return _target_columns([*keys, *(condition for condition in conditions if condition is not None)])

    @property
    def updating_columns(self) -> frozenset[str]:
        """The columns of the table from which the new values of updated rows are computed."""
        updates = [clause.assignments or {} for clause in self.clauses if clause.action is Action.UPDATE]
        return _target_columns(value for assignments in updates for value in assignments.values())


class _Resolver:
    """Resolves the clauses of a merge."""

    def __init__(self, schema: Schema, source_columns: Sequence[str]) -> None:
        self._schema = schema
        self._source_columns = source_columns
        self.names = Names(target=frozenset(field.name for field in schema.fields), source=frozenset(source_columns))

    def clause(self, clause: Clause) -> Clause:
        """The clause with resolved names and all assignments."""
        condition = None if clause.condition is None else self.names.resolve(clause.condition, clause.when.sides)
        return replace(clause, condition=condition, assignments=self._assignments(clause))

    def _assignments(self, clause: Clause) -> Mapping[str, Value] | None:
        """The value of each column that a clause writes; an update keeps the columns that it does not name."""
        if clause.action is Action.DELETE:
            return None
        if clause.assignments is None:
            assigned = {name: _column(SOURCE, name) for name in self._source_columns if name in self.names.target}
            if len(assigned) == 0:
                raise InputError(f"merge: {str(clause)!r}: the source has none of the table's columns")
        else:
            assigned = self._named(clause, clause.assignments)
        if clause.action is Action.INSERT:
            return assigned
        return {field.name: assigned.get(field.name, _column(TARGET, field.name)) for field in self._schema.fields}

    def _named(self, clause: Clause, values: Mapping[str, Value]) -> dict[str, Value]:
        """The values of the columns that a clause names; an update may name fields inside structs."""
        assigned: dict[str, Value] = {}
        for name, value in values.items():
            own_name = name[2:] if name.startswith(f"{TARGET}.") and name not in self.names.target else name
            problem = self._problem(clause, own_name, assigned)
            if problem is not None:
                raise InputError(f"merge: {str(clause)!r}: {problem}", field=own_name)
            assigned[own_name] = self.names.resolve(value, clause.when.sides)
        return column_values(assigned, self._schema.fields, lambda name: Reference((TARGET, name)))

    def _problem(self, clause: Clause, name: str, assigned: Mapping[str, Value]) -> str | None:
        """Why a clause cannot assign a column or field; none if it can."""
        if name in assigned:
            return f"{name!r} is set twice"
        if path_of(name, self._schema.fields) is None:
            return f"the table has no column {name!r}, or it lies in a list or map"
        if name not in self.names.target and clause.action is Action.INSERT:
            return f"{name!r} lies inside a column; insert the whole column"
        return None


def _split(on: Value) -> tuple[tuple[KeyPair, ...], Value | None]:
    """The equalities between table and source in a joining condition, and the rest of it."""
    keys: list[KeyPair] = []
    rest: list[Node] = []
    for part in _conjuncts(on.node):
        sides = _equality(part)
        if sides is None:
            rest.append(part)
        else:
            keys.append(KeyPair(target=Value(on.text, sides[0]), source=Value(on.text, sides[1])))
    if len(rest) == 0:
        return tuple(keys), None
    return tuple(keys), Value(on.text, rest[0] if len(rest) == 1 else Call("and", tuple(rest)))


def _conjuncts(node: Node) -> Iterator[Node]:
    if not (isinstance(node, Call) and node.function == "and"):
        yield node
        return
    for argument in node.arguments:
        yield from _conjuncts(argument)


def _equality(node: Node) -> tuple[Node, Node] | None:
    """The two sides of an equality between the table and the source, that of the table first."""
    if not (isinstance(node, Call) and node.function == "="):
        return None
    left, right = node.arguments
    sides = (sides_of(left), sides_of(right))
    if sides == (frozenset({TARGET}), frozenset({SOURCE})):
        return left, right
    return (right, left) if sides == (frozenset({SOURCE}), frozenset({TARGET})) else None


def _column(side: str, name: str) -> Value:
    return Value(f"{side}.{name}", Reference((side, name)))


def _target_columns(values: Iterable[Value]) -> frozenset[str]:
    return frozenset(name for value in values for name in columns_read(value, TARGET))
