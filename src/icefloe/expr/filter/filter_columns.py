"""The columns that a filter needs (spec: Scan Planning)."""

from __future__ import annotations

from dataclasses import replace

from icefloe.expr.filter.nodes import Bound, BoundPredicate, leaves
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import Field, List, Map, Struct, Type, fold_type


def filter_columns(filter: Bound, schema: Schema) -> Schema:
    """The columns that a filter tests, and of structs only the fields that it tests.

    A struct, list or map that is only tested for null has no fields inside: readers can find out which values are null
    from any column inside it.

    >>> from icefloe.expr.filter.nodes import Op
    >>> from icefloe.model.schema.types import LONG
    >>> inner = Struct((Field(2, "x", LONG), Field(3, "y", LONG)))
    >>> schema = Schema(fields=(Field(1, "s", inner), Field(4, "z", LONG)))
    >>> str(filter_columns(BoundPredicate(Op.GT, 3, ("s", "y"), LONG, (1,)), schema).field("s").type)
    'struct<3: y: long>'
    >>> str(filter_columns(BoundPredicate(Op.IS_NULL, 1, ("s",), inner), schema).field("s").type)
    'struct<>'
    """
    wanted = frozenset(leaf.field_id for leaf in leaves(filter) if isinstance(leaf, BoundPredicate))
    return Schema(fields=_tested(schema.fields, wanted), schema_id=schema.schema_id)


def _tested(fields: tuple[Field, ...], wanted: frozenset[int]) -> tuple[Field, ...]:
    kept = []
    for field in fields:
        inner = _tested(field.type.fields, wanted) if isinstance(field.type, Struct) else ()
        if field.id in wanted or len(inner) > 0:
            kept.append(replace(field, type=Struct(inner) if isinstance(field.type, Struct) else _hollow(field.type)))
    return tuple(kept)


def _hollow(type_: Type) -> Type:
    """A type with only the fields that are needed to distinguish its values from null."""

    def hollow(nested: Type, inner: tuple[Type, ...]) -> Type:
        match nested:
            case Struct():
                return Struct(())
            case List():
                return replace(nested, element=inner[0])
            case Map():
                return replace(nested, value=inner[1])
            case _:
                return nested

    return fold_type(type_, hollow)
