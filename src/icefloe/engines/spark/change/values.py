"""Values that changes assign to columns on Spark: Spark SQL, checked like written data.

Texts of a MERGE name the table ``t`` or ``target``, and the source ``s`` or ``source``. Spark knows the frames by the
short names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from icefloe.engines.spark.change.conditions import not_understood
from icefloe.engines.spark.schema import spark_type
from icefloe.engines.spark.write.conform import VALUE, failure, fitted
from icefloe.errors import UnsupportedError
from icefloe.expr.text.spark_sql import quoted
from icefloe.expr.value.nodes import WITH_FIELDS, Call, Node, Reference, SparkText
from icefloe.model.schema.types import Field, Struct

_LONG_ALIASES = {"target": "t", "source": "s"}
_FLOATING = (st.FloatType, st.DoubleType)
_NESTED = (st.StructType, st.ArrayType, st.MapType)


def with_short_aliases(text: str) -> str:
    """The text with ``t.`` and ``s.`` in place of ``target.`` and ``source.``.

    >>> with_short_aliases("target.id = Source.id AND s.target.x = 'target.'")
    "t.id = s.id AND s.target.x = 'target.'"
    """
    try:
        tokens = list(sqlglot.tokenize(text, read="spark"))
    except SqlglotError:  # Spark says what is wrong with it
        return text
    for index in range(len(tokens) - 2, -1, -1):
        token, after_dot = tokens[index], index > 0 and tokens[index - 1].token_type is TokenType.DOT
        alias = _LONG_ALIASES.get(token.text.lower())
        if alias is not None and tokens[index + 1].token_type is TokenType.DOT and not after_dot:
            text = text[: token.start] + alias + text[token.end + 1 :]
    return text


def column_of(node: Node) -> Column:
    """The column of a text, of a reference, or of equalities between references."""
    match node:
        case SparkText(text):
            return F.expr(text)
        case Reference(path):
            return F.col(quoted(*path))
        case Call("=", (left, right)):
            return column_of(left) == column_of(right)
        case Call("and", (first, *rest)):
            result = column_of(first)
            for part in rest:
                result = result & column_of(part)
            return result
        case _:
            raise UnsupportedError(f"a value of this kind is not evaluated on Spark: {node}", feature="values on spark")


def text_of(node: Node) -> str:
    """The text of a node, for messages."""
    return node.text if isinstance(node, SparkText) else str(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Analysed:
    """The type of a text, and whether its value is a constant."""

    type: st.DataType
    is_constant: bool


def _analysed(frame: DataFrame, nodes: Sequence[Node]) -> list[_Analysed]:
    """The types of values over the columns of a frame; InputError names a text that Spark refuses."""
    try:
        chosen = frame.select(*(column_of(node).alias(f"v{index}") for index, node in enumerate(nodes)))
    except (AnalysisException, ParseException) as error:
        for node in nodes if len(nodes) > 1 else ():
            _analysed(frame, [node])
        raise not_understood(text_of(nodes[0]), error) from error
    expressions: Any = chosen._jdf.queryExecution().analyzed().expressions()
    return [
        _Analysed(type=field.dataType, is_constant=bool(expressions.apply(index).child().foldable()))
        for index, field in enumerate(chosen.schema)
    ]


def check_condition(frame: DataFrame, node: Node) -> None:
    """InputError if a text is no condition on the rows of a frame."""
    try:
        frame.select(F.when(column_of(node), 1))
    except (AnalysisException, ParseException) as error:
        raise not_understood(text_of(node), error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """Computes columns of a table from the columns of ``frame``; ``types`` are those of its columns, by path."""

    frame: DataFrame
    types: Mapping[tuple[str, ...], st.DataType]

    def column(self, node: Node, field: Field) -> Column:
        """The value of a column of the table, checked."""
        if not (isinstance(node, Call) and node.function == WITH_FIELDS):
            return self._value(node, field, field.name)
        struct, *values = node.arguments
        (paths,) = node.options
        return self._struct(column_of(struct), field, dict(zip(paths, values, strict=True)), field.name)

    def _value(self, node: Node, field: Field, name: str) -> Column:
        if isinstance(node, Reference):
            return self._fitted(column_of(node), self.types[node.path], field, name)
        (found,) = _analysed(self.frame, [node])
        value, target = column_of(node), spark_type(field)
        if not found.is_constant:
            return self._fitted(value, found.type, field, name)
        if isinstance(found.type, st.DecimalType) and isinstance(target, _FLOATING):
            return self._fitted(value.cast(target), target, field, name)
        if isinstance(found.type, st.StringType) and not isinstance(target, (st.StringType, *_NESTED)):
            message = f"column {name!r} is {field.type}; the text {VALUE} does not fit"
            cast = value.try_cast(target)
            checked = F.when(value.isNull() | cast.isNotNull(), cast).otherwise(failure(message, value))
            return self._fitted(checked, target, field, name)
        return self._fitted(value, found.type, field, name)

    def _fitted(self, value: Column, type_: st.DataType, field: Field, name: str) -> Column:
        return fitted(self.frame, value, st.StructField(field.name, type_), field, name)

    def _struct(self, struct: Column, field: Field, values: Mapping[tuple[str, ...], Node], name: str) -> Column:
        """A struct with new values of some fields; a struct that was null gets null in the others."""
        if not isinstance(field.type, Struct):
            raise UnsupportedError(f"column {name!r} has no fields", field=name)
        inner = []
        for child in field.type.fields:
            below = {path[1:]: node for path, node in values.items() if path[0] == child.name}
            old, child_name = struct.getField(child.name), f"{name}.{child.name}"
            if () in below:
                inner.append(self._value(below[()], child, child_name))
            elif len(below) > 0:
                inner.append(self._struct(old, child, below, child_name))
            else:
                inner.append(self._fitted(old, spark_type(child), child, child_name))
        return F.struct(*inner).alias(field.name)
