"""Reader options that select appended rows."""

from __future__ import annotations

import pytest

from icefloe.errors import InputError
from icefloe.spark_sql.versions import AppendRange, appends_in_options


def test_two_snapshots_select_the_appends_between_them() -> None:
    assert appends_in_options({}) is None
    assert appends_in_options({"snapshot-id": "3"}) is None
    assert appends_in_options({"Start-Snapshot-Id": "3"}) == AppendRange(after=3)
    assert appends_in_options({"start-snapshot-id": "3", "end-snapshot-id": "4"}) == AppendRange(after=3, until=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end-snapshot-id": "4"}, "start-snapshot-id too"),
        ({"start-snapshot-id": "3", "Branch": "audit"}, "start-snapshot-id and branch cannot be combined"),
        ({"start-snapshot-id": "first"}, "start-snapshot-id 'first' is not a number"),
        ({"start-snapshot-id": "3", "end-snapshot-id": ""}, "end-snapshot-id '' is not a number"),
    ],
)
def test_options_that_select_nothing_are_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        appends_in_options(options)
