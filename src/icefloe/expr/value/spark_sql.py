"""SQL values printed as Spark SQL that computes what Arrow computes.

How a value is computed depends on types, so the printer knows the types of all columns: it converts arguments to the
type in which Arrow computes, and casts results that Spark computes in another type. The text is meant for a session
with ``SESSION_SETTINGS``: errors instead of nulls, and the time zone UTC. What Spark computes differently is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.expr.text.spark_sql import quoted
from icefloe.expr.value.expressions import Value, value_type
from icefloe.expr.value.nodes import Call, Case, Constant, Node, Reference, SparkText
from icefloe.expr.value.spark_functions import CALLS, CONSTRUCTORS
from icefloe.expr.value.spark_types import Sql, condition, constant_sql, converted
from icefloe.expr.value.types import common_type

SESSION_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
}


def to_spark_sql(value: Value, columns: Mapping[str, pa.DataType], *, wanted: pa.DataType | None = None) -> str:
    """The value as Spark SQL, with the result and the type of ``evaluate_value``; ``columns`` has types by name.

    ``wanted`` is the type of the column that the value is assigned to. UnsupportedError if Spark computes the value
    differently.

    >>> to_spark_sql(Value("t.n + 1", Call("+", (Reference(("t", "n")), Constant(pa.scalar(1))))), {"t.n": pa.int32()})
    '(CAST(`t`.`n` AS BIGINT) + 1L)'
    """
    printer = _Printer(value.text, columns)
    try:
        return (printer.sql(value.node) if wanted is None else printer.sql_for(value.node, wanted)).text
    except IcefloeError:
        raise
    except MemoryError:
        raise
    except (ValueError, pa.ArrowException) as error:
        raise InputError(f"cannot compute {value.text!r}: {error}", value=value.text) from error


class _Printer:
    """Prints the nodes of values over columns of known types."""

    def __init__(self, text: str, columns: Mapping[str, pa.DataType]) -> None:
        self._text = text
        self._columns = columns

    def type_of(self, node: Node, wanted: pa.DataType | None = None) -> pa.DataType:
        return value_type(Value(self._text, node), self._columns, wanted=wanted)

    def sql(self, node: Node) -> Sql:
        match node:
            case Constant():
                return constant_sql(node.value)
            case Reference():
                return Sql(text=quoted(*node.path), type=self.type_of(node))
            case Case():
                return self._case(node)
            case Call(function) if function in CONSTRUCTORS:
                return CONSTRUCTORS[function](self, node, None)
            case Call():
                return CALLS[node.function](self, node)
            case SparkText():
                raise UnsupportedError(f"the type of {node.text!r} is known to Spark only", feature="spark sql")

    def sql_for(self, node: Node, wanted: pa.DataType) -> Sql:
        if isinstance(node, Call) and node.function in CONSTRUCTORS:
            return CONSTRUCTORS[node.function](self, node, wanted)
        printed = self.sql(node)
        if not isinstance(node, Constant):
            return printed
        return converted(printed, common_type([wanted, printed.type], [False, True]))

    def alike(self, nodes: Sequence[Node], wanted: pa.DataType | None = None) -> list[Sql]:
        printed = [self.sql(node) if wanted is None else self.sql_for(node, wanted) for node in nodes]
        type_ = common_type([part.type for part in printed], [isinstance(node, Constant) for node in nodes])
        return [converted(part, type_) for part in printed]

    def _case(self, node: Case) -> Sql:
        outcomes = self.alike((*node.results, node.default))
        tests = [condition(self.sql(test)) for test in node.conditions]
        branches = " ".join(
            f"WHEN {test} THEN {outcome.text}" for test, outcome in zip(tests, outcomes[:-1], strict=True)
        )
        return Sql(text=f"CASE {branches} ELSE {outcomes[-1].text} END", type=outcomes[-1].type)
