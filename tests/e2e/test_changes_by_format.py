"""Every change of rows in tables of ORC and Avro files: the same rows, and files of the table's own format."""

from __future__ import annotations

import pytest

from support.people import MODES, check, new_table, people, rows_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("file_format", ["orc", "avro"])
@pytest.mark.parametrize(("version", "mode"), MODES)
def test_rows_are_changed_in_files_of_any_format(tmp_path, version, mode, file_format):
    table = new_table(tmp_path, version, mode, partition_by=("city",), write_format_default=file_format)
    table.append(people(*range(10)))
    table.append(people(*range(10, 20), city="Rome"))
    table.delete("id in (0, 1, 10)")
    table.update({"amount": "amount + 1"}, where="id between 3 and 12")
    table.upsert(people(7, 50, city="Bern", amount=9), on=["id"])
    table.overwrite(people(60, city="Bern", amount=0), where="id = 19")
    table.overwrite_partitions(people(70, city=None))
    expected = {number: 1 for number in range(2, 19) if number != 10}
    expected |= dict.fromkeys((3, 4, 5, 6, 8, 9, 11, 12), 2) | {7: 9, 50: 9, 60: 0, 70: 1}
    if version > 1:
        table.upsert(people(60, city="Bern", amount=5), on=["id", "city"], deletes="equality")
        expected[60] = 5
    assert {row[0]: row[2] for row in rows_of(table)} == expected
    plan = table.scan().plan()
    formats = {*plan.tasks["file_format"].to_pylist(), *plan.deletes["file_format"].to_pylist()}
    assert formats == {file_format}
    check(table)
