"""Filter expressions as frozen values (spec: Scan Planning).

``And`` and ``Or`` hold any number of children, so that a filter of thousands of terms is a flat tuple and not a deep
tree; ``fold`` walks a tree of any depth without recursion. A ``Predicate`` names its column; binding it to a schema
gives a ``BoundPredicate``, whose literals are values of the column's type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, TypeVar

from icefloe.errors import InputError
from icefloe.model.schema.types import PrimitiveType, Type
from icefloe.transforms import Identity, Transform

IDENTITY = Identity()


class Op(Enum):
    """The operator of a predicate; the value is its name in messages."""

    IS_NULL = "is null"
    NOT_NULL = "is not null"
    IS_NAN = "is nan"
    NOT_NAN = "is not nan"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "="
    NE = "!="
    IN = "in"
    NOT_IN = "not in"
    STARTS_WITH = "starts with"
    NOT_STARTS_WITH = "not starts with"

    @property
    def negated(self) -> Op:
        """The operator of NOT: a comparison with null stays null, null and NaN tests are never null."""
        return _NEGATED[self]

    @property
    def takes_literals(self) -> bool:
        """Whether the operator compares with literals; null and NaN tests do not."""
        return self not in _UNARY


_PAIRS = (
    (Op.IS_NULL, Op.NOT_NULL),
    (Op.IS_NAN, Op.NOT_NAN),
    (Op.LT, Op.GE),
    (Op.GT, Op.LE),
    (Op.EQ, Op.NE),
    (Op.IN, Op.NOT_IN),
    (Op.STARTS_WITH, Op.NOT_STARTS_WITH),
)
_NEGATED = {op: other for a, b in _PAIRS for op, other in ((a, b), (b, a))}
# Comparisons that NaN satisfies: it is larger than every other value, and equal to itself alone.
MATCHES_NAN = frozenset({Op.GT, Op.GE, Op.NE, Op.NOT_IN})
_UNARY = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})


@dataclass(frozen=True, slots=True)
class Constant:
    """The same answer for every row."""

    value: bool


@dataclass(frozen=True, slots=True)
class TransformTerm:
    """A partition transform of a column: ``bucket[16]`` of ``id``, in the spec's spelling of transforms."""

    transform: str
    column: str

    def __str__(self) -> str:
        return f"{self.transform}({self.column})"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test of ``term``: a column by its full dotted name, or a transform of one; literals are plain Python values."""

    op: Op
    term: str | TransformTerm
    literals: tuple[object, ...] = ()

    @property
    def column(self) -> str:
        """The full dotted name of the column, whether transformed or not."""
        return self.term if isinstance(self.term, str) else self.term.column


@dataclass(frozen=True, slots=True)
class BoundPredicate:
    """A test of a column of a schema, or of a ``transform`` of it; ``path`` are the names down to the column.

    ``type`` is the type of the tested values and of the literals: that of the column or, with a transform, its result
    type for ``source``, the type of the column. Only tests for null have a type that is not primitive. Literals are
    never null or NaN, sorted and distinct for IN and NOT IN. UUIDs are their 16 bytes, a timestamptz is a datetime in
    UTC, a timestamp a datetime without time zone; timestamps of nanoseconds are counts of them from 1970.
    """

    op: Op
    field_id: int
    path: tuple[str, ...]
    type: Type
    literals: tuple[object, ...] = ()
    transform: Transform = IDENTITY
    source: PrimitiveType | None = None

    @property
    def name(self) -> str:
        """The full dotted name of the column."""
        return ".".join(self.path)

    @property
    def column_type(self) -> Type:
        """The type of the column itself."""
        return self.type if self.source is None else self.source

    @property
    def literal(self) -> object:
        """The one literal of a comparison."""
        (only,) = self.literals
        return only


class _Tree:
    """Equality, hash and text of the nodes that hold others, without recursion: filters of programs nest deeply."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Tree):
            return NotImplemented
        return self is other or _flat(self) == _flat(other)

    def __hash__(self) -> int:
        return hash(_flat(self))

    def __repr__(self) -> str:
        return fold(self, repr, _repr)  # type: ignore[arg-type]  # every tree is an expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(_Tree):
    """True when every child is true; build with ``conjunction``."""

    children: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(_Tree):
    """True when any child is true; build with ``disjunction``."""

    children: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(_Tree):
    """The negation of its child; a null stays null."""

    child: Expr


Leaf: TypeAlias = Constant | Predicate | BoundPredicate
Branch: TypeAlias = And | Or | Not
Expr: TypeAlias = Constant | Predicate | BoundPredicate | And | Or | Not
Bound: TypeAlias = Constant | BoundPredicate | And | Or

ALWAYS_TRUE = Constant(True)
ALWAYS_FALSE = Constant(False)

T = TypeVar("T")


def conjunction(exprs: Iterable[Expr]) -> Expr:
    """All of these: nested conjunctions are flattened and constants folded.

    >>> conjunction([ALWAYS_TRUE, Predicate(Op.IS_NULL, "a")])
    Predicate(op=<Op.IS_NULL: 'is null'>, term='a', literals=())
    """
    return _join(And, exprs, neutral=ALWAYS_TRUE, absorbing=ALWAYS_FALSE)


def disjunction(exprs: Iterable[Expr]) -> Expr:
    """Any of these: nested disjunctions are flattened and constants folded."""
    return _join(Or, exprs, neutral=ALWAYS_FALSE, absorbing=ALWAYS_TRUE)


def negation(expr: Expr) -> Expr:
    """Not this; a predicate takes the opposite operator.

    >>> negation(Predicate(Op.IS_NULL, "a"))
    Predicate(op=<Op.NOT_NULL: 'is not null'>, term='a', literals=())
    """
    match expr:
        case Constant(value):
            return Constant(not value)
        case Predicate() | BoundPredicate():
            return replace(expr, op=expr.op.negated)
        case Not(child):
            return child
        case _:
            return Not(expr)


def _join(kind: type[And] | type[Or], exprs: Iterable[Expr], *, neutral: Constant, absorbing: Constant) -> Expr:
    parts: list[Expr] = []
    for expr in exprs:
        if expr == absorbing:
            return absorbing
        if isinstance(expr, kind):
            parts.extend(expr.children)
        elif expr != neutral:
            parts.append(expr)
    if len(parts) == 0:
        return neutral
    return parts[0] if len(parts) == 1 else kind(tuple(parts))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts that must all hold; none for ``ALWAYS_TRUE``."""
    if expr == ALWAYS_TRUE:
        return ()
    return expr.children if isinstance(expr, And) else (expr,)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one."""
    match expr:
        case And(parts) | Or(parts):
            return parts
        case Not(child):
            return (child,)
        case _:
            return ()


def leaves(expr: Expr) -> Iterator[Leaf]:
    """Every constant and predicate of a tree, in order."""
    pending: list[Expr] = [expr]
    while len(pending) > 0:
        node = pending.pop()
        if isinstance(node, (And, Or, Not)):
            pending.extend(reversed(children(node)))
        else:
            yield node


def bound_leaf(leaf: Leaf) -> Constant | BoundPredicate:
    """The leaf of a bound filter; InputError for one that is not bound."""
    if isinstance(leaf, Predicate):
        raise InputError(f"bind the filter before evaluating it: {leaf.term} {leaf.op.value}")
    return leaf


def with_both_zeros(literals: tuple[object, ...]) -> tuple[object, ...]:
    """Literals for a test by hash: -0.0 and 0.0 are equal but have different hashes, so both are included."""
    return (*literals, -0.0) if any(isinstance(value, float) and value == 0 for value in literals) else literals


def fold(expr: Expr, leaf: Callable[[Leaf], T], branch: Callable[[Branch, list[T]], T]) -> T:
    """The value of a tree computed from its leaves up; ``branch`` gets the values of its children in order."""
    pending: list[tuple[Expr, bool]] = [(expr, False)]
    done: list[T] = []
    while len(pending) > 0:
        node, expanded = pending.pop()
        if not isinstance(node, (And, Or, Not)):
            done.append(leaf(node))
        elif expanded:
            parts = children(node)
            values = done[len(done) - len(parts) :]
            del done[len(done) - len(parts) :]
            done.append(branch(node, values))
        else:
            pending.append((node, True))
            pending.extend((child, False) for child in reversed(children(node)))
    return done[0]


def push_not(expr: Expr) -> Expr:
    """The same expression without NOT: it is pushed into the operators of the predicates (De Morgan)."""
    # Each subtree gives both itself and its negation, so that one pass over any depth is enough.
    kept, _ = fold(expr, _both, _both_of)
    return kept


def _both(leaf: Leaf) -> tuple[Expr, Expr]:
    return leaf, negation(leaf)


def _both_of(node: And | Or | Not, parts: list[tuple[Expr, Expr]]) -> tuple[Expr, Expr]:
    if isinstance(node, Not):
        kept, negated = parts[0]
        return negated, kept
    every, some = conjunction, disjunction
    if isinstance(node, Or):
        every, some = some, every
    return every(kept for kept, _ in parts), some(negated for _, negated in parts)


def _flat(tree: _Tree) -> tuple[object, ...]:
    """The nodes of a tree, parents first: a branch as its class and number of children, a leaf as itself."""
    flat: list[object] = []
    pending: list[object] = [tree]
    while len(pending) > 0:
        node = pending.pop()
        if isinstance(node, (And, Or, Not)):
            parts = children(node)
            flat.append((type(node), len(parts)))
            pending.extend(reversed(parts))
        else:
            flat.append(node)
    return tuple(flat)


def _repr(node: Branch, parts: list[str]) -> str:
    if isinstance(node, Not):
        return f"Not(child={parts[0]})"
    return f"{type(node).__name__}(children=({', '.join(parts)}{',' if len(parts) == 1 else ''}))"
