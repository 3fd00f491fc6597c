"""Results on the screen and for programs: tables for people, JSON and CSV for scripts."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import chain, islice
from typing import Any
from uuid import UUID

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

_SHOWN_TEXT = 80  # characters of a nested value in a table for people
_WIDE = 10_000  # columns of a table that is piped: no line is wrapped


class Output(StrEnum):
    """The forms of a result."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Rows with the same columns.

    ``rows`` are read once, as they are printed. A table for people shows at most ``limit`` rows, in ``shown_columns``.
    """

    columns: tuple[str, ...]
    rows: Iterable[Mapping[str, Any]]
    limit: int | None = None
    shown_columns: tuple[str, ...] | None = None
    note: str | None = None  # below a table for people
    findings: bool = False  # whether the program ends with the exit code for findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One result with named fields; ``text`` or ``drawing`` is shown to people instead of the fields."""

    fields: Mapping[str, Any]
    text: str | None = None
    drawing: Any = None  # a renderable of rich
    findings: bool = False


def listing_of(table: Any, **settings: Any) -> Listing:
    """The rows of an Arrow table or of a reader of Arrow batches; they become Python values batch by batch."""
    batches = table.to_batches(max_chunksize=4096) if hasattr(table, "to_batches") else table
    rows = chain.from_iterable(batch.to_pylist() for batch in batches)
    return Listing(columns=tuple(table.schema.names), rows=rows, **settings)


def show(result: Listing | Record, output: Output) -> None:
    """Print a result."""
    match output, result:
        case Output.JSON, Listing():
            _write_json_rows(result.rows)
        case Output.JSON, Record():
            _write(f"{json_text(result.fields)}\n")
        case Output.CSV, Listing():
            _write_csv(result.columns, result.rows)
        case Output.CSV, Record():
            _write_csv(tuple(result.fields), [result.fields])
        case _, Listing():
            _show_listing(result)
        case _, Record():
            _show_record(result)


def json_text(value: Any, *, indent: int = 2) -> str:
    """A value as JSON; dates and times are ISO 8601, decimals are text, bytes are hexadecimal.

    >>> json_text({"day": date(2026, 11, 1), "raw": b"ab", "price": Decimal("1.50")}, indent=0)
    '{"day": "2026-11-01", "raw": "6162", "price": "1.50"}'
    """
    return msgspec.json.format(msgspec.json.encode(_plain(value)), indent=indent).decode()


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case bytes():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | Decimal() | UUID():
            return str(value)
        case _:
            return value


def _write(text: str) -> None:
    sys.stdout.write(text)


def _write_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    separator = "[\n"
    for row in rows:
        _write(f"{separator}  {json_text(row, indent=0)}")
        separator = ",\n"
    _write("[]\n" if separator == "[\n" else "\n]\n")


def _write_csv(columns: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])


def _cell(value: Any) -> str:
    """A value as one text; nested values as JSON."""
    plain = _plain(value)
    if plain is None:
        return ""
    return json_text(plain, indent=0) if isinstance(plain, (dict, list, bool)) else str(plain)


def console(*, errors: bool = False) -> Console:
    """The terminal, or a stream of plain text of any width if the output is piped."""
    screen = Console(stderr=errors, highlight=False, soft_wrap=False)
    return screen if screen.is_terminal else Console(stderr=errors, highlight=False, width=_WIDE, no_color=True)


def _show_listing(listing: Listing) -> None:
    columns = listing.columns if listing.shown_columns is None else listing.shown_columns
    rows = iter(listing.rows)
    shown = list(rows if listing.limit is None else islice(rows, listing.limit))
    screen = console()
    screen.print(_grid(columns, shown))
    if next(rows, None) is not None:
        screen.print(f"the first {len(shown):,} rows; --limit 0 shows all", style="dim")
    if listing.note is not None:
        screen.print(listing.note, style="dim", soft_wrap=True)


def _grid(columns: tuple[str, ...], rows: list[Mapping[str, Any]]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        numbers = all(isinstance(row.get(column), (int, float, Decimal, type(None))) for row in rows)
        grid.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(_shown(row.get(column))) for column in columns))
    return grid


def _shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    text = _cell(value)
    return text if len(text) <= _SHOWN_TEXT or isinstance(value, str) else f"{text[:_SHOWN_TEXT]}…"


def _show_record(record: Record) -> None:
    screen = console()
    if record.drawing is not None:
        screen.print(record.drawing)
    elif record.text is not None:
        _write(f"{record.text}\n")
    else:
        screen.print(_fields(record.fields))


def _fields(fields: Mapping[str, Any]) -> Grid:
    grid = Grid(box=None, pad_edge=False, show_header=False)
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in fields.items():
        for number, line in enumerate(_lines(value)):
            grid.add_row(name if number == 0 else "", Text(line))
    return grid


def _lines(value: Any) -> Iterator[str]:
    """The lines of a field: one for each item of a list or mapping."""
    match value:
        case Mapping() if len(value) > 0:
            yield from (f"{key} = {_cell(item)}" for key, item in value.items())
        case list() | tuple() if len(value) > 0:
            yield from (_cell(item) for item in value)
        case list() | tuple() | Mapping():
            yield "none"
        case _:
            yield _shown(value)
