"""Storage that fails at every single call: the table stays readable, and holds all of a change or none of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icefloe.errors import IcefloeError
from icefloe.io.local import LocalFileIO
from icefloe.table.table import Table
from icefloe.testing.faulty_io import Fault, FaultyFileIO
from icefloe.testing.intercepted_io import Effect
from support.crashes import DEEP
from support.tables import new_catalog, reopened

pytestmark = pytest.mark.slow

MANY = 60  # more calls than any of these operations makes


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


OPERATIONS = {
    "append": (lambda table: table.append(rows(9)), [0, 1, 2, 9]),
    "delete": (lambda table: table.delete("id = 1"), [0, 2]),
    "upsert": (lambda table: table.upsert(rows(2, 5), on=["id"]), [0, 1, 2, 5]),
}


TABLES = {"v2": (2, {}), "v4 deep": (4, DEEP), "v1": (1, {}), "v3": (3, {}), "v4": (4, {})}


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("operation", list(OPERATIONS))
@pytest.mark.parametrize("kind", TABLES)
def test_a_fault_at_any_call_leaves_all_or_nothing(tmp_path, kind, operation, effect):
    version, properties = TABLES[kind]
    change, after = OPERATIONS[operation]
    before = [0, 1, 2]
    outcomes = set()
    for n in range(1, MANY):
        catalog = new_catalog(tmp_path / str(n))
        table = catalog.create_table("db.t", schema="id bigint", format_version=version, properties=properties)
        for part in [[number] for number in before] if kind == "v4 deep" else [before]:
            table.append(rows(*part))
        io = FaultyFileIO(LocalFileIO(), Fault(at=n, effect=effect))
        try:
            change(reopened(table, io))
            failed = False
        except IcefloeError:
            failed = True
        healthy = catalog.load_table("db.t")
        found = ids(healthy)
        assert found == (before if failed else after)
        outcomes.add(failed)
        if failed:
            change(healthy)
            assert ids(catalog.load_table("db.t")) == after
        if not io.hit:
            break
    else:
        pytest.fail(f"still meeting the fault after {MANY} calls")
    assert outcomes == {True, False}
