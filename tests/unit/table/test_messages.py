"""What people write by mistake, and the words of the message that says what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyspark
import pytest

import icefloe
from icefloe.errors import IcefloeError, InputError, UnsupportedError
from icefloe.table.table import Table

MILLISECONDS = 1_763_500_000_000
NAIVE = datetime(2026, 1, 1)  # what the message is about
NO_ZONE = "has no time zone; add one"
NO_SESSION = "a SparkSession is expected"
AS_TIME = r"As milliseconds since 1970 it is 2025-11-18T21:06:40\+00:00: give that"


@pytest.fixture
def table() -> Table:
    catalog = icefloe.catalog("messages", uri="memory://messages")
    if catalog.table_exists("db.t"):
        return catalog.load_table("db.t")
    made = catalog.create_table("db.t", schema="id bigint, city string, ts timestamp", format_version=3)
    made.append(pa.table({"id": [1], "city": ["Oslo"], "ts": pa.array([0], pa.timestamp("us", "UTC"))}))
    return made


def partitioned(text: str) -> Callable[[Table], object]:
    return lambda table: icefloe.catalog("messages", uri="memory://messages").create_table(
        "db.other", schema="id bigint, a string", partition_by=[text]
    )


def in_list(argument: str) -> str:
    return rf"{argument}='\w+' is a text, and a list is expected; write {argument}=\['\w+'\]"


CASES: dict[str, tuple[Callable[[Any], object], str]] = {
    "bucket[0]": (partitioned("bucket[0]"), r"write day\(ts\), bucket\(16, id\).*how metadata writes a transform"),
    "bucket(0, id)": (partitioned("bucket(0, id)"), "the number of buckets is 1 to 2147483647, not 0"),
    "bucket(9999999999, id)": (partitioned("bucket(9999999999, id)"), "is 1 to 2147483647, not 9999999999"),
    "bucket(id, 0)": (partitioned("bucket(id, 0)"), "the number of buckets is 1 to 2147483647, not 0"),
    "columns of a scan": (lambda t: t.scan(columns="city"), in_list("columns")),
    "columns of a point": (lambda t: t.at().scan(columns="city"), in_list("columns")),
    "columns of changes": (lambda t: t.changes(columns="city"), in_list("columns")),
    "columns analyzed": (lambda t: t.analyze("city"), in_list("columns")),
    "keys": (lambda t: t.changes(images=True, keys="id"), in_list("keys")),
    "partition_by": (lambda t: _new(partition_by="city"), in_list("partition_by")),
    "sort_by": (lambda t: _new(sort_by="city"), in_list("sort_by")),
    "remove": (lambda t: t.set_properties({}, remove="owner"), in_list("remove")),
    "cluster_by": (lambda t: t.rewrite_manifests("city"), in_list("cluster_by")),
    "locations": (lambda t: t.remove_files("file"), in_list("locations")),
    "snapshots": (lambda t: t.expire(snapshots=5), r"snapshots=5 is of type int, and a list is expected"),
    "naive time of a point": (lambda t: t.at(timestamp=NAIVE), NO_ZONE),
    "naive time of a rollback": (lambda t: t.rollback(timestamp="2026-01-01 00:00:00"), NO_ZONE),
    "naive time of changes": (lambda t: t.changes(NAIVE), NO_ZONE),
    "naive time of expiry": (lambda t: t.expire(NAIVE), NO_ZONE),
    "naive time of orphans": (lambda t: t.remove_orphans(NAIVE), NO_ZONE),
    "naive times in rows": (
        lambda t: t.append(pa.table({"ts": pa.array([0], pa.timestamp("us"))})),
        "have no time zone: say which one it is",
    ),
    "naive time in a filter": (lambda t: t.scan("ts > '2026-01-01'").count(), "give the literal an offset"),
    "milliseconds of a point": (lambda t: t.at(timestamp=MILLISECONDS), AS_TIME),
    "milliseconds as text": (lambda t: t.at(timestamp=str(MILLISECONDS)), AS_TIME),
    "milliseconds of changes": (lambda t: t.changes(MILLISECONDS), AS_TIME),
    "milliseconds of expiry": (lambda t: t.expire(MILLISECONDS), AS_TIME),
    "milliseconds of orphans": (lambda t: t.remove_orphans(MILLISECONDS), AS_TIME),
    "milliseconds of metadata tables": (lambda t: t.inspect.files(timestamp=MILLISECONDS), AS_TIME),
    "seconds": (lambda t: t.expire(1763500000.5), "is of type float; give a datetime with a time zone"),
    "attach(None)": (lambda t: icefloe.attach(None, "demo"), f"spark= is None, and {NO_SESSION}"),
    "attach(catalog, name)": (lambda t: icefloe.attach(t, "demo"), f"spark= is of type Table, and {NO_SESSION}"),
    "detach(None)": (lambda t: icefloe.detach(None, "demo"), NO_SESSION),
    "to_spark(None)": (lambda t: t.scan().to_spark(None), NO_SESSION),
    "spark= of a delete": (lambda t: t.delete("id = 1", spark="local[2]"), f"of type str, and {NO_SESSION}"),
    "scheme of a table": (lambda t: icefloe.open_table("gopher://x/t"), "no storage for scheme 'gopher'"),
    "scheme of a catalog": (
        lambda t: icefloe.catalog("x", uri="gopher://x/t").list_tables("db"),
        "no kind of catalog has the scheme 'gopher'; write sqlite:///path/to/catalog.db, postgresql://host/db or",
    ),
    "a Hive metastore": (
        lambda t: icefloe.catalog("x", uri="thrift://x:9083"),
        r"type 'hive', by the scheme of its uri",
    ),
}


def _new(**arguments: Any) -> object:
    catalog = icefloe.catalog("messages", uri="memory://messages")
    return catalog.create_table("db.other", schema="id bigint, city string", **arguments)


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_named_in_the_users_words(table: Table, case: str) -> None:
    act, words = CASES[case]
    with pytest.raises(IcefloeError, match=words):
        act(table)
    assert not icefloe.catalog("messages", uri="memory://messages").table_exists("db.other")


def test_a_number_of_buckets_of_ten_digits_is_a_number() -> None:
    """It was taken for a column: no column '1000000007'."""
    catalog = icefloe.catalog("buckets", uri="memory://buckets")
    made = catalog.create_table("db.t", schema="id bigint, a string", partition_by=["bucket(1000000007, a)"])
    assert [field.transform for field in made.spec.fields] == ["bucket[1000000007]"]
    again = catalog.create_table("db.u", schema="id bigint, a string", partition_by=["bucket(a, 1000000007)"])
    assert again.spec.fields[0].transform == "bucket[1000000007]"


def test_a_column_may_have_a_number_as_its_name() -> None:
    catalog = icefloe.catalog("numbers", uri="memory://numbers")
    made = catalog.create_table("db.t", schema="`4` bigint", partition_by=["bucket(16, `4`)"])
    assert [field.transform for field in made.spec.fields] == ["bucket[16]"]


def test_pandas_that_is_not_installed_is_named(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for frame in (table.scan().to_pandas, table.changes().to_pandas):
        with pytest.raises(UnsupportedError, match=r"to_pandas\(\) needs pandas, which is not installed: pip install"):
            frame()


def test_a_pyspark_that_is_too_old_is_named_before_its_internals_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    class OldSession:
        sparkContext = None  # noqa: N815  # Spark's name

    monkeypatch.setattr(pyspark, "__version__", "3.5.4")
    with pytest.raises(UnsupportedError, match=r"PySpark 3\.5\.4 is installed, and icefloe needs PySpark 4 or later"):
        icefloe.attach(OldSession(), "demo")
    with pytest.raises(InputError, match=NO_SESSION):
        icefloe.attach(5, "demo")
