"""A catalog in a folder, the command line on it, and a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from support.command_line import CommandLine


@pytest.fixture
def run(tmp_path: Path) -> CommandLine:
    return CommandLine(uri=f"sqlite:///{tmp_path}/cat.db", warehouse=f"file://{tmp_path}/wh")


@pytest.fixture
def orders(run: CommandLine) -> icefloe.Table:
    """A table of two commits: three orders, then one more."""
    table = run.catalog().create_table(
        "shop.orders",
        schema="id bigint not null, city string, amount decimal(8, 2)",
        partition_by=["city"],
        sort_by=["id desc"],
        format_version=4,
        properties={"owner": "me"},
    )
    for rows in ([(1, "Oslo", "1.50"), (2, "Rome", "2.00"), (3, "Oslo", None)], [(4, "Rome", "4.25")]):
        ids, cities, amounts = zip(*rows, strict=True)
        amount = pa.array(amounts).cast(pa.decimal128(8, 2))
        table.append(pa.table({"id": ids, "city": cities, "amount": amount}))
    return table
