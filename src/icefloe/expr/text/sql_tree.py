"""The tree that sqlglot makes of a condition or a value in SQL."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

TRIPPED = (LookupError, AttributeError, TypeError)  # what comes of a call that lacks an argument, such as map('a')
NOT_SQL = (SqlglotError, *TRIPPED)


def sql_tree(text: str) -> Any:
    """The tree of a text in the spelling of Spark; a ParseError too where the parser trips over it.

    >>> type(sql_tree("a + 1")).__name__
    'Add'
    """
    try:
        return sqlglot.parse_one(text, read="spark", into=exp.Condition)
    except TRIPPED as error:
        raise ParseError(f"the parser fails: {error}") from error


def sql_text(tree: Any) -> str:
    """The beginning of what a tree was made of, for messages."""
    return str(tree.sql("spark", unsupported_level=ErrorLevel.IGNORE))[:200]
