"""Pages of statements with their results: a reference to read, and tests on icefloe and on Apache Iceberg.

A statement ends with a semicolon at the end of a line. One that begins with ``spark.`` is Python, in which ``F`` are
Spark's functions; all others are SQL. The lines after it are its result:

* ``--> 1 | Oslo`` is a row. ``*`` is any text. Without such a line, the statement returns no rows.
* ``--! AnalysisException: text`` is the class of its error, and a part of the message.
* ``--iceberg [key]: reason`` says that Apache Iceberg has another result, which the next lines show. The key is that of
  a row of the table in docs/spark-sql.md. ``--iceberg> 1 | Oslo`` is a row there and ``--iceberg! text`` a part of the
  error; without either, it succeeds without rows. ``--iceberg; ALTER TABLE ...`` runs there afterwards, and does what
  the statement does here.

Other lines that begin with ``--`` are for readers.

Apache Iceberg has the result of a statement if it returns the same rows, or fails too. Of errors, only the names that
Spark gives them, such as ``[TABLE_OR_VIEW_NOT_FOUND]``, must be equal: the other words are those of each program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession, functions

PAGES = sorted((Path(__file__).parents[1] / "spark_sql" / "pages").glob("*.sql"))
CATALOGS = ("demo", "other")  # which are empty at the beginning of each page
_PYTHON = "spark."
_RESULTS = ("-->", "--!", "--iceberg")
_ERROR = re.compile(r"(?P<kind>\w+): (?P<text>.*)", re.DOTALL)
_DIFFERENCE = re.compile(r"--iceberg \[(?P<key>[a-z0-9-]+)\]: (?P<reason>.+)")
_CLASS = re.compile(r"\[[A-Z0-9_.]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What Apache Iceberg does instead: its rows or its error, and the statements that do what ours does."""

    key: str
    reason: str
    rows: tuple[str, ...] = ()
    error: str | None = None
    instead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement, with the rows or the error that it ends with."""

    line: int
    text: str
    rows: tuple[str, ...] = ()
    error: tuple[str, str] | None = None  # the class, and a part of the message
    difference: Difference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a statement ended with."""

    rows: tuple[str, ...] = ()
    error: tuple[str, str] | None = None  # the class, and the message


def statements(text: str) -> Iterator[Statement]:
    """The statements of a page."""
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        if lines[place].startswith("--") or lines[place].strip() == "":
            assert not lines[place].startswith(_RESULTS), f"line {place + 1}: a result without a statement"
            place += 1
            continue
        start = place
        while not lines[place].endswith(";"):
            place += 1
        end = place = place + 1
        while place < len(lines) and lines[place].startswith(_RESULTS):
            place += 1
        yield _statement(start + 1, "\n".join(lines[start:end])[:-1], lines[end:place])


def _statement(line: int, text: str, results: list[str]) -> Statement:
    error = None
    for result in _after("--!", results):
        match = _ERROR.fullmatch(result)
        assert match is not None, f"line {line}: write the class of the error, a colon, and its text"
        error = (match["kind"], match["text"])
    difference = _difference(line, [result for result in results if result.startswith("--iceberg")])
    return Statement(line=line, text=text, rows=_after("-->", results), error=error, difference=difference)


def _difference(line: int, results: list[str]) -> Difference | None:
    if len(results) == 0:
        return None
    match = _DIFFERENCE.fullmatch(results[0])
    assert match is not None, f"line {line}: write the difference as --iceberg [key]: reason"
    error = _after("--iceberg!", results)
    return Difference(
        key=match["key"],
        reason=match["reason"],
        rows=_after("--iceberg>", results),
        error=error[0] if len(error) > 0 else None,
        instead=_after("--iceberg;", results),
    )


def _after(prefix: str, results: list[str]) -> tuple[str, ...]:
    return tuple(result.removeprefix(prefix).strip() for result in results if result.startswith(prefix))


@contextmanager
def new_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A new session for a page. It is the active one, in which ``format`` looks for catalogs."""
    java_class = SparkSession._get_j_spark_session_class(spark._jvm)
    session = spark.newSession()
    java_class.setActiveSession(session._jsparkSession)
    try:
        yield session
    finally:
        java_class.setActiveSession(spark._jsparkSession)


def problems_on_icefloe(spark: SparkSession, page: Path) -> list[str]:
    """Run a page on icefloe: the statements with another result than the page says."""
    found = []
    for statement in statements(page.read_text(encoding="utf-8")):
        outcome = run(spark, statement.text)
        if not has_result(statement, outcome):
            found.append(_shown(page, statement, outcome, "icefloe has another result"))
    return found


def check_page(spark: SparkSession, page: Path) -> int:
    """Run a page on icefloe, which must have the results of the page; returns the number of statements."""
    problems = problems_on_icefloe(spark, page)
    assert problems == [], "\n\n".join(problems)
    return len(list(statements(page.read_text(encoding="utf-8"))))


def problems_on_iceberg(spark: SparkSession, page: Path) -> list[str]:
    """Run a page on Apache Iceberg: the statements with another result, and the differences that are none."""
    found = []
    for statement in statements(page.read_text(encoding="utf-8")):
        outcome = run(spark, _in_iceberg(statement.text))
        problem = problem_of_iceberg(statement, outcome)
        if problem is not None:
            found.append(_shown(page, statement, outcome, problem))
        for text in () if statement.difference is None else statement.difference.instead:
            instead = run(spark, text)
            if instead.error is not None:
                found.append(_shown(page, statement, instead, f"{text} fails"))
    return found


def problem_of_iceberg(statement: Statement, outcome: Outcome) -> str | None:
    """What is wrong with a statement, by the outcome on Apache Iceberg."""
    is_same = _is_same(statement, outcome)
    difference = statement.difference
    if difference is None:
        return None if is_same else "Apache Iceberg has another result: remove the difference, or mark it"
    if is_same:
        return f"Apache Iceberg has the same result: remove the mark [{difference.key}]"
    if outcome.error is not None:
        part = "" if len(difference.instead) > 0 else None  # another statement is needed since this one fails
        known = part if difference.error is None else difference.error
        is_known = known is not None and _matches(f"*{known}*", outcome.error[1])
    else:
        is_known = difference.error is None and _match(difference.rows, outcome.rows)
    return None if is_known else "Apache Iceberg has another result than the one marked"


def has_result(statement: Statement, outcome: Outcome) -> bool:
    """Whether an outcome is the one that a page says, to the class of its error."""
    if statement.error is None or outcome.error is None:
        return statement.error is None and outcome.error is None and _match(statement.rows, outcome.rows)
    kind, text = statement.error
    return outcome.error[0] == kind and text in outcome.error[1]


def _is_same(statement: Statement, outcome: Outcome) -> bool:
    """Whether the outcome of another program is that of a statement."""
    if statement.error is None or outcome.error is None:
        return has_result(statement, outcome)
    name = _CLASS.match(statement.error[1])
    return name is None or name[0] in outcome.error[1]


def _match(patterns: tuple[str, ...], rows: tuple[str, ...]) -> bool:
    return len(patterns) == len(rows) and all(map(_matches, patterns, rows))


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def run(spark: SparkSession, text: str) -> Outcome:
    """Run a statement."""
    try:
        value = eval(text, {"spark": spark, "F": functions}) if text.startswith(_PYTHON) else spark.sql(text)
        return Outcome(rows=tuple(line_of(row) for row in _rows(value)))
    except Py4JJavaError as error:
        return Outcome(error=(type(error).__name__, _one_line(error.java_exception.toString())))
    except (PySparkException, Py4JError) as error:
        return Outcome(error=(type(error).__name__, _one_line(str(error))))


def _rows(value: Any) -> Iterable[Iterable[Any]]:
    if isinstance(value, DataFrame):
        rows: list[Iterable[Any]] = value.collect()
        return rows
    return () if value is None else ((value,),)


def _in_iceberg(text: str) -> str:
    return text.replace('format("icefloe")', 'format("iceberg")')


def _shown(page: Path, statement: Statement, outcome: Outcome, problem: str) -> str:
    """A problem, with the outcome as a page writes it."""
    lines = [f"--> {row}" for row in outcome.rows]
    if outcome.error is not None:
        lines = [f"--! {': '.join(outcome.error)}"]
    return "\n".join([f"{page.name}:{statement.line}: {problem}", f"{statement.text};", *lines])


def line_of(row: Iterable[Any]) -> str:
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
    return _one_line(str(value))


def _one_line(text: str) -> str:
    return " ".join(text.split())
