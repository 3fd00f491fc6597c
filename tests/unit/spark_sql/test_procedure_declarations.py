"""Procedures of CALL are declared by the functions that run them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import icefloe
from icefloe.catalogs.names import Identifier
from icefloe.errors import InputError
from icefloe.spark_sql.messages import CallProcedure, ParameterDescription
from icefloe.spark_sql.procedures.calls import ProcedureCalls
from icefloe.spark_sql.procedures.procedure import Int, Row, procedure
from icefloe.table.catalog import Catalog


@procedure("a string")
def described(
    table: icefloe.Table,
    at: datetime,
    with_: list[int],
    count: Int | None = None,
    share: float | None = None,
    options: dict[str, str] | None = None,
    is_dry: bool = False,
) -> list[Row]:
    """Say what it gets.

    The description ends before this.
    """
    return [(table.name, at, with_, count, share, options, is_dry)]


@procedure("a string")
def of_catalog(catalog: Catalog, table: Identifier, place: str) -> list[Row]:
    """Name a table that need not exist."""
    return [(catalog.table_exists(table), table, place)]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return icefloe.catalog("demo", uri=f"file://{tmp_path}")


def test_name_description_and_parameters_are_those_of_the_function() -> None:
    known = described.described
    assert (known.name, known.description, known.result) == ("described", "Say what it gets", "a string")
    assert known.parameters == tuple(
        ParameterDescription(name=name, type=type_, default=default)
        for name, type_, default in (
            ("table", "string", None),
            ("at", "timestamp", None),
            ("with", "array<bigint>", None),
            ("count", "int", "NULL"),
            ("share", "double", "NULL"),
            ("options", "map<string, string>", "NULL"),
            ("is_dry", "boolean", "false"),
        )
    )


def test_arguments_are_converted_and_null_ones_have_the_defaults(catalog: Catalog) -> None:
    name = catalog.create_table("db.t", schema="id bigint").name
    arguments = {"table": "db.t", "at": "1000000", "with": ("1", "2"), "count": "3", "is_dry": "true"}
    time = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert described.run(catalog, ("db", "t"), arguments) == [(name, time, [1, 2], 3, None, None, True)]


def test_a_procedure_of_a_catalog_gets_the_name_of_the_table(catalog: Catalog) -> None:
    assert [each.name for each in of_catalog.described.parameters] == ["table", "place"]
    assert of_catalog.run(catalog, ("db", "new"), {"place": "here"}) == [(False, ("db", "new"), "here")]


@pytest.mark.parametrize(("arguments", "name"), [({"table": "db.t"}, "format_version"), ({}, "table")])
def test_null_for_a_parameter_without_a_default_is_refused_by_name(
    catalog: Catalog, arguments: dict[str, str], name: str
) -> None:
    call = CallProcedure(procedure="upgrade", arguments={**arguments})
    with pytest.raises(InputError, match=f"upgrade: {name} is NULL"):
        ProcedureCalls("demo", catalog).call_procedure(call)
