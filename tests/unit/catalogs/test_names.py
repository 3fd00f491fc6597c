"""Names of tables as text."""

from __future__ import annotations

import pytest

from icefloe.catalogs.names import parse_identifier, spelled


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("db.orders", ("db", "orders")),
        ("`db`.`orders`", ("db", "orders")),
        ("`lake`.db.orders", ("lake", "db", "orders")),
        ("lake.`my db`.`orders.v1`", ("lake", "my db", "orders.v1")),
        ("db.`a``b`", ("db", "a`b")),
        ("db.a`b", ("db", "a`b")),
        ("db.`a", ("db", "`a")),
    ],
)
def test_backticks_around_any_part_of_a_name_are_no_part_of_it(text: str, parts: tuple[str, ...]) -> None:
    # Only the last part could have them, so that CALL with `db`.`orders` found no table.
    assert parse_identifier(text) == parts
    assert parse_identifier(spelled(parts)) == parts
