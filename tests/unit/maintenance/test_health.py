"""The health of a table: figures from its metadata, and findings with the command that fixes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.property_updates import SetProperties
from icefloe.commit.operations.ref_updates import SetRef
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.engines.choose import engine_for
from icefloe.maintenance.health import Health, HealthFinding, findings_of, health_of
from icefloe.maintenance.health_figures import HealthFigures, measure
from icefloe.maintenance.verify.findings import Severity
from icefloe.model.entries import MANIFESTS
from icefloe.model.metadata.snapshots import Ref
from icefloe.table.held_table import pointer_of
from icefloe.table.table import Table
from icefloe.tree.file_changes import FileChanges
from icefloe.tree.root import leaves_of, read_live_leaf, read_root
from support.entry_tables import LOCATION, World, data, equality_deletes, new_world, position_deletes, rows, vector
from support.tables import VERSIONS

TARGET = {"write.target-file-size-bytes": "1000"}
DAY_MS = 24 * 60 * 60 * 1000


def health(made: World, *, now_ms: int = 0, storage: bool = False) -> Health:
    return health_of(made.base(), engine_for(None), now_ms=now_ms, storage=storage)


def figures(made: World, **options: object) -> HealthFigures:
    return measure(made.base(), engine_for(None), **{"now_ms": 0, **options})


def named(result: Health, name: str) -> HealthFinding | None:
    return next((each for each in result.findings if each.name == name), None)


def sized(name: str, size: int, city: str = "Oslo", count: int = 10) -> dict[str, object]:
    return {**data(name, city, rows=count), "file_size_in_bytes": size}


@pytest.mark.parametrize("version", VERSIONS)
def test_small_files_are_counted_by_partition(version):
    made = new_world(version, **TARGET)
    oslo = [sized(f"o{number}", 300) for number in range(6)]
    rome = [sized(f"r{number}", 100, "Rome") for number in range(4)]  # too few to be worth it
    made.commit(Append(added=rows(*oslo, *rome, sized("large", 900))))
    found = figures(made)
    assert (found.data_files, found.data_bytes, found.rows) == (11, 6 * 300 + 400 + 900, 110)
    assert (found.small_files, found.small_bytes, found.small_files_after) == (6, 1800, 2)
    (finding,) = [each for each in health(made).findings if each.name == "small-files"]
    assert finding.command == "t.compact()"
    assert finding.gain == {"data_files": 7}
    assert finding.severity is Severity.INFO


def test_many_small_files_are_a_warning_and_large_ones_no_finding():
    made = new_world(4, **TARGET)
    made.commit(Append(added=rows(*(sized(f"f{number}", 10) for number in range(200)))))
    assert named(health(made), "small-files").severity is Severity.WARNING
    good = new_world(4, **TARGET)
    good.commit(Append(added=rows(*(sized(f"f{number}", 800) for number in range(200)))))
    assert health(good).findings == ()


def test_a_partition_that_is_much_larger_than_others_is_found():
    made = new_world(4, **TARGET)
    others = [sized(city, 1000, city) for city in ("Rome", "Bonn", "Riga", "Kyiv")]
    made.commit(Append(added=rows(sized("a", 90_000, count=500), *others)))
    found = named(health(made), "skew")
    assert found.figures["largest_partition_bytes"] == 90_000
    assert found.figures["median_partition_rows"] == 10
    assert "city=Oslo" in found.what
    assert "update_partitioning" in found.command


@pytest.mark.parametrize("version", [3, 4])
def test_deleted_rows_are_measured_by_file_and_overall(version):
    made = new_world(version, **TARGET)
    made.commit(Append(added=rows(sized("a", 900), sized("b", 900), sized("c", 900))))
    made.commit(
        RowDelta(changes=FileChanges(added=rows(vector("v", "a", rows=6)), revectored=made.tasks("a")), read=made.head)
    )
    found = figures(made)
    assert (found.deletion_vectors, found.rows_deleted_by_vectors) == (1, 6)
    assert found.delete_ratio == pytest.approx(0.2)
    assert (found.files_with_deletes, found.files_mostly_deleted, found.bytes_mostly_deleted) == (1, 1, 900)
    finding = named(health(made), "deleted-rows")
    assert (finding.command, finding.gain["rows"]) == ("t.compact()", 24)
    assert named(health(made), "delete-files") is None


def test_delete_files_are_counted_for_each_data_file():
    made = new_world(2, **TARGET)
    made.commit(Append(added=rows(sized("a", 900), sized("b", 900), sized("c", 900, "Rome"))))
    deletes = [position_deletes("p", "a", rows=2), position_deletes("q", None), equality_deletes("e")]
    made.commit(RowDelta(changes=FileChanges(added=rows(*deletes)), read=made.head))
    found = figures(made)
    assert (found.position_delete_files, found.equality_delete_files) == (2, 1)
    assert found.most_delete_files_of_a_data_file == 3
    assert found.delete_files_per_data_file == pytest.approx((3 + 2) / 3)
    finding = named(health(made), "delete-files")
    assert (finding.command, finding.severity) == ("t.rewrite_deletes()", Severity.WARNING)


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_that_overlap_are_found_and_rewriting_them_helps(version):
    limits = {"commit.manifest-merge.enabled": "false", "commit.root.max-data-files": "0"}
    made = new_world(version, **TARGET, **limits)
    cities = ("Oslo", "Rome", "Bonn")
    for number in range(8):
        made.commit(Append(added=rows(*(sized(f"{city}{number}", 900, city) for city in cities))))
    before = figures(made)
    assert before.manifests >= 7
    finding = named(health(made), "manifests")
    assert finding.command == "t.rewrite_manifests()"
    assert before.manifests_per_partition > 6
    made.table().rewrite_manifests().execute()
    after = figures(made)
    assert after.manifests == finding.gain["manifests"] == 1
    assert after.manifests_per_partition == finding.gain["manifests_per_partition"] == 1
    assert named(health(made), "manifests") is None


def test_leaves_with_dead_rows_are_found():
    made = new_world(4, **TARGET, **{"commit.root.max-data-files": "2"})
    made.commit(Append(added=rows(*(sized(name, 900) for name in "abcdefgh"))))
    made.commit(SetProperties(updates={"commit.root.max-data-files": "100"}))
    assert figures(made).leaf_rows == 8
    made.commit(RemoveFiles(locations=tuple(data(name)["location"] for name in "abc")))
    found = figures(made)
    assert (found.leaf_rows, found.dead_leaf_rows, found.leaves_mostly_dead) == (8, 3, 1)
    assert named(health(made), "dead-leaf-rows").gain == {"dead_leaf_rows": 0, "leaf_rows": 5}


def test_snapshots_past_their_retention_are_found():
    made = new_world(4, **TARGET)
    for name in "abc":
        made.commit(Append(added=rows(sized(name, 900))))
    head = made.head
    assert named(health(made, now_ms=head.timestamp_ms), "snapshots") is None
    later = head.timestamp_ms + 6 * DAY_MS
    finding = named(health(made, now_ms=later), "snapshots")
    assert (finding.command, finding.gain["snapshots"]) == ("t.expire()", 1)
    first, *_ = made.metadata.snapshots
    made.commit(SetRef(ref_name="first", ref=Ref(snapshot_id=first.snapshot_id, type="tag"), fresh=True))
    assert named(health(made, now_ms=later), "snapshots").gain["snapshots"] == 2


def test_snapshots_that_the_retention_rules_do_not_keep_are_counted():
    made = new_world(4, **TARGET)
    for name in "abcde":
        made.commit(Append(added=rows(sized(name, 900))))
    base = pointer_of(made.table()).held()
    later = made.head.timestamp_ms + 6 * DAY_MS
    assert measure(base, engine_for(None), now_ms=later).expirable_snapshots == 4
    assert measure(base, engine_for(None), now_ms=made.head.timestamp_ms).expirable_snapshots == 0


def test_unreferenced_files_are_measured_only_when_asked_for():
    made = new_world(4, **TARGET)
    made.commit(Append(added=rows(sized("a", 900))))
    made.io.write_new(f"{LOCATION}/data/lost.parquet", b"12345")
    assert figures(made).unreferenced_files is None
    found = figures(made, storage=True)
    assert (found.unreferenced_files, found.unreferenced_bytes) == (1, 5)
    assert named(health(made, storage=True), "unreferenced-files").command == "t.remove_orphans()"


def test_an_empty_table_is_healthy():
    result = new_world(4).table().health(storage=True)
    assert result.findings == ()
    assert result.figures.data_files == 0
    assert result.snapshot_id is None


def test_a_result_can_be_read_and_passed_on():
    made = new_world(4, **TARGET)
    made.commit(Append(added=rows(*(sized(f"f{number}", 10) for number in range(7)))))
    result = made.table().health()
    lines = repr(result).splitlines()
    assert lines[0] == "health db.t: 1 finding"
    assert lines[-1] == "    t.compact(): 1 data files instead of 7"
    told = result.as_dict()
    assert told["findings"][0]["gain"] == {"data_files": 1}
    assert told["figures"]["small_files"] == 7


def test_every_command_exists():
    everything = HealthFigures(
        small_files=9,
        partitions=9,
        largest_partition_bytes=10**6,
        delete_ratio=0.5,
        position_delete_files=2,
        most_delete_files_of_a_data_file=2,
        manifests=90,
        manifests_per_partition=50,
        leaves_mostly_dead=1,
        expirable_snapshots=1,
        snapshots=2,
        unreferenced_files=1,
        unreferenced_bytes=1,
    )
    found = list(findings_of(everything))
    assert len(found) == 8
    for each in found:
        (name,) = re.findall(r"\bt\.(\w+)\(", each.command)
        assert hasattr(Table, name), each.command
        assert len(each.gain) > 0
        assert len(each.figures) > 0


@given(
    commits=st.lists(
        st.lists(st.sampled_from(["Oslo", "Rome", "Bonn", None, "Riga"]), min_size=1, max_size=5),
        min_size=1,
        max_size=5,
    ),
    version=st.sampled_from([2, 4]),
)
def test_the_manifests_of_a_partition_are_those_whose_range_has_it(commits, version):
    """Compared with a count of manifests one by one."""
    limits = {"commit.manifest-merge.enabled": "false", "commit.root.max-data-files": "0"}
    made = new_world(version, **limits)
    for number, cities in enumerate(commits):
        entries = [sized(f"f{number}-{place}", 10, city) for place, city in enumerate(cities)]
        made.commit(Append(added=rows(*entries)))
    base = made.base()
    root = read_root(base.store, base.metadata.current_snapshot)
    held = [
        read_live_leaf(base.store, root, leaf)["lower_bound:p1000"].to_pylist()
        for leaf in leaves_of(root.rows(*MANIFESTS))
    ]
    ranges = [[city for city in cities if city is not None] for cities in held]
    partitions = made.plan().tasks["lower_bound:p1000"].to_pylist()

    def opens(cities: list[str], city: str | None) -> bool:
        return len(cities) == 0 or city is None or min(cities) <= city <= max(cities)

    counts = [sum(opens(cities, city) for cities in ranges) for city in set(partitions)]
    assert measure(base, engine_for(None), now_ms=0).manifests_per_partition == pytest.approx(sum(counts) / len(counts))
