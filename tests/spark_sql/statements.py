"""Pages of SQL statements with their results, to be read as a reference and run as tests.

A statement ends with a semicolon at the end of a line. The lines after it that begin with ``-->`` are the rows that it
returns, with ``|`` between values; ``--!`` begins a part of the message of its error, behind the class of the error.
Other lines that begin with ``--`` are for readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

PAGES = Path(__file__).parent / "pages"
_ROW, _ERROR = "-->", "--!"
_ERROR_LINE = re.compile(r"(?P<kind>\w+): (?P<text>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement, with the rows or the error that it ends with; neither if nothing is said about them."""

    line: int
    sql: str
    rows: tuple[str, ...] | None
    error: tuple[str, str] | None


def statements(text: str) -> Iterator[Statement]:
    """The statements of a page."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        if lines[place].startswith("--") or lines[place].strip() == "":
            place += 1
            continue
        start = place
        while not lines[place].endswith(";"):
            place += 1
        sql = "\n".join(lines[start : place + 1])[:-1]
        place += 1
        rows, error = [], None
        while place < len(lines) and lines[place].startswith((_ROW, _ERROR)):
            rest = lines[place][len(_ROW) :].strip()
            if lines[place].startswith(_ERROR):
                match = _ERROR_LINE.fullmatch(rest)
                assert match is not None, f"line {place + 1}: write the class of the error, a colon, and its text"
                error = (match["kind"], match["text"])
            else:
                rows.append(rest)
            place += 1
        yield Statement(line=start + 1, sql=sql, rows=tuple(rows) if len(rows) > 0 else None, error=error)


def run_page(spark: SparkSession, page: Path) -> int:
    """Run the statements of a page in order, and return how many there are.

    The first one with another result fails, at its line. Programs run pages too, so this needs no pytest.
    """
    number = 0
    for statement in statements(page.read_text(encoding="utf-8")):
        run_statement(spark, statement, f"{page.name}:{statement.line}: {statement.sql}")
        number += 1
    return number


def run_statement(spark: SparkSession, statement: Statement, where: str) -> None:
    """Run a statement and compare its result with that of the page."""
    raised = None
    lines: list[str] = []
    try:
        lines = [line_of(row) for row in spark.sql(statement.sql).collect()]
    except PySparkException as error:
        raised = error
    found = "\n".join([where, *(f"{_ROW} {line}" for line in lines), *([] if raised is None else [str(raised)])])
    if statement.error is None:
        assert raised is None, found
        assert statement.rows in (None, tuple(lines)), found
    else:
        kind, text = statement.error
        assert type(raised).__name__ == kind, found
        assert text in " ".join(str(raised).split()), found


def line_of(row: Row) -> str:
    """A row as a line of a page."""
    return " | ".join(text_of(value) for value in row).strip()


def text_of(value: Any) -> str:
    """A value as a page writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, Row):
        return "{" + ", ".join(text_of(part) for part in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(text_of(part) for part in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (date, datetime)):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    return " ".join(str(value).split())
