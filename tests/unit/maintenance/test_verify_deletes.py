"""The check of delete files, of histories, and of files whose bytes are damaged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.row_delta import RowDelta
from icefloe.maintenance.verify.check import Check
from icefloe.maintenance.verify.findings import Finding, Rule, Severity
from icefloe.model.metadata.snapshots import Snapshots
from icefloe.tree.file_changes import FileChanges
from support.crashes import start_world
from support.damage import damaged
from support.entry_tables import World, data, equality_deletes, new_world, position_deletes, rows
from support.memory_files import files_in


def world(*deletes: dict[str, object]) -> World:
    """A table of two data files in Oslo, with deletes."""
    made = new_world(2)
    made.commit(Append(added=rows(data("a"), data("b"))))
    made.commit(RowDelta(changes=FileChanges(added=rows(*deletes)), read=made.head))
    return made


def findings(made: World, **changes: object) -> list[Finding]:
    base = made.base()
    check = Check(base.store, replace(base.metadata, **changes), files=False, deletes=False)
    return list(check.findings())


def test_deletes_that_fit_their_data_files_are_no_finding():
    assert findings(world(position_deletes("p", "a"), position_deletes("q", None), equality_deletes("e"))) == []


@pytest.mark.parametrize("delete", [position_deletes("p", None, city="Rome"), equality_deletes("e", city="Rome")])
def test_a_delete_file_that_applies_to_nothing_is_reported(delete):
    (found,) = findings(world(delete))
    assert (found.rule, found.severity) == (Rule.DANGLING_DELETES, Severity.INFO)
    assert "t.rewrite_deletes()" in found.remedy


def test_a_position_delete_file_in_another_partition_than_its_data_file_is_found():
    found = findings(world(position_deletes("p", "a", city="Rome")))
    errors = [each for each in found if each.severity is Severity.ERROR]
    assert [each.rule for each in errors] == [Rule.POSITION_DELETES]
    assert "so it does not apply" in errors[0].message


def test_a_position_delete_file_that_was_added_in_version_3_is_found():
    made = world(position_deletes("p", "a"))
    assert findings(made) == []
    *first, last = made.metadata.snapshots
    later = Snapshots((*first, replace(last, first_row_id=0, added_rows=0)))
    found = findings(made, format_version=3, snapshots=later, next_row_id=100)
    assert Rule.POSITION_DELETES in {each.rule for each in found}
    before = findings(made, format_version=3, next_row_id=100)
    assert Rule.POSITION_DELETES not in {each.rule for each in before}


def test_a_snapshot_that_is_its_own_ancestor_is_found():
    made = world(position_deletes("p", "a"))
    first, last = made.metadata.snapshots
    circle = Snapshots((replace(first, parent_id=last.snapshot_id), last))
    found = [each for each in findings(made, snapshots=circle) if each.rule is Rule.HISTORY]
    assert any("is its own ancestor" in each.message for each in found)


@pytest.mark.broken_tables
@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 4])
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(draw=st.data())
def test_no_damage_stops_the_check(version, draw):
    """Whatever is done to the bytes of a file, the check ends with findings, or with none if nothing is wrong."""
    world = start_world(version).copy()
    head = world.table().metadata_location
    location = draw.draw(st.sampled_from(sorted(files_in(world.io))))
    world.io.replace(location, draw.draw(damaged(world.io.read(location))))
    result = world.table().verify("all", files=True, rows=True)
    assert result.metadata_location == head
    assert isinstance(repr(result), str)
