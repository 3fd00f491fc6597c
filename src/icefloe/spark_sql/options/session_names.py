"""Columns and conditions in the arguments of CALL, by the rules of the session: case, time zone, functions of Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import SparkSession

from icefloe.engines.spark.change.conditions import condition_of
from icefloe.errors import UnsupportedError
from icefloe.expr.filter.nodes import Expr
from icefloe.model.schema.schema import Schema

_CASE = "spark.sql.caseSensitive"
_NAME = re.compile(r"(?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*")


def is_case_sensitive() -> bool:
    """Whether the session distinguishes names by case."""
    return bool(SparkSession.active().conf.get(_CASE) == "true")


def term(text: str, schema: Schema, *, case_sensitive: bool) -> str:
    """A sort key or partition field with its columns as the table spells them.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> schema = parse_ddl("id bigint, city string")
    >>> [term(text, schema, case_sensitive=False) for text in ("ID desc", "bucket(4, Id)", "`CITY`")]
    ['`id` desc', 'bucket(4, `id`)', '`city`']
    """

    def spelled(found: re.Match[str]) -> str:
        if found[0].isdecimal():
            return found[0]
        return f"`{_spelled(found[0].replace('`', ''), schema, case_sensitive=case_sensitive)}`"

    head, parenthesis, rest = text.partition("(")
    if parenthesis == "":
        return _NAME.sub(spelled, text, count=1)
    inner, _, tail = rest.rpartition(")")
    return f"{head}({_NAME.sub(spelled, inner)}){tail}"


def _spelled(name: str, schema: Schema, *, case_sensitive: bool) -> str:
    return schema.names[schema.find(name, case_sensitive=case_sensitive).id]


def columns(names: Sequence[str], schema: Schema) -> list[str]:
    """Names of columns as the table spells them, by the case rule of the session."""
    case_sensitive = is_case_sensitive()
    return [_spelled(name, schema, case_sensitive=case_sensitive) for name in names]


def terms(texts: Sequence[str], schema: Schema) -> list[str]:
    """Sort keys or partition fields with columns as the table spells them, by the case rule of the session."""
    case_sensitive = is_case_sensitive()
    return [term(text, schema, case_sensitive=case_sensitive) for text in texts]


def filter_of_text(text: str | None, schema: Schema) -> Expr | None:
    """The filter that a condition means to Spark, such as ``1 = 1``; UnsupportedError if it is none as a whole."""
    if text is None:
        return None
    condition = condition_of(SparkSession.active(), text, schema)
    if condition.sql is not None:
        raise UnsupportedError(
            f"where => {text!r} cannot choose files: only comparisons of columns with literals can; leave the rest out",
            filter=text,
        )
    return condition.filter
