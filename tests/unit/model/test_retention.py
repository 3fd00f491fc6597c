"""Which snapshots expire: the rule of the specification, case by case and against a naive version of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.commit.idempotency import IDEMPOTENCY_KEY, STREAM_BATCH, STREAM_QUERY, record_in
from icefloe.model.metadata.retention import ExpirePolicy, apply_policy, at_time
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot, Snapshots
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import LONG, Field

NOW = 1_000
AGE, FEWEST, MOST, REF_AGE, RECORD_AGE = (
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "history.expire.max-snapshots-to-keep",
    "history.expire.max-ref-age-ms",
    "history.expire.max-record-age-ms",
)


def table(
    parents: dict[int, int | None],
    refs: dict[str, Ref],
    times: dict[int, int] | None = None,
    summaries: dict[int, dict[str, str]] | None = None,
    **properties: str,
) -> TableMetadata:
    """A table with snapshots of ids and parents; the time of a snapshot is its id unless given."""
    snapshots = tuple(
        Snapshot(
            snapshot_id=key,
            parent_id=parent,
            timestamp_ms=(times or {}).get(key, key),
            root="r",
            summary=(summaries or {}).get(key, {}),
        )
        for key, parent in parents.items()
    )
    return TableMetadata(
        format_version=2,
        table_uuid="u",
        location="file:///t",
        last_updated_ms=NOW,
        last_column_id=1,
        schemas=(Schema(fields=(Field(1, "a", LONG),)),),
        snapshots=Snapshots(snapshots),
        refs=refs,
        current_snapshot_id=refs[MAIN].snapshot_id if MAIN in refs else None,
        properties={AGE: "100", **{name.replace("_", "-"): text for name, text in properties.items()}},
    )


def line(length: int, *, start: int = 900, step: int = 10) -> dict[int, int | None]:
    ids = [start + step * number for number in range(length)]
    return dict(zip(ids, [None, *ids[:-1]], strict=True))


def expired(metadata: TableMetadata, **policy: object) -> list[int]:
    return list(apply_policy(metadata, ExpirePolicy(now_ms=NOW, **policy), record_in).expired)


def test_snapshots_past_the_age_expire_and_the_newest_ones_stay():
    metadata = table(line(5, start=860), {MAIN: Ref(snapshot_id=900)})
    assert expired(metadata) == [860, 870, 880, 890]  # 900 is exactly 100 ms old, which is not older
    assert expired(metadata, older_than_ms=880) == [860, 870]
    assert expired(metadata, older_than_ms=NOW, retain_last=3) == [860, 870]
    assert expired(replace(metadata, properties={FEWEST: "4", AGE: "1"})) == [860]


def test_a_table_bounds_the_snapshots_of_a_branch_by_their_number():
    """A commit every ten seconds made 43,000 snapshots in five days, each of them in every metadata file."""
    parents = {**line(6, start=950, step=5), 972: 970}  # all younger than 100 ms; 972 is staged
    refs = {
        MAIN: Ref(snapshot_id=975),
        "v1": Ref(snapshot_id=950, type="tag"),
        "own": Ref(snapshot_id=960, max_snapshot_age_ms=45),
    }
    metadata = replace(table(parents, refs), properties={AGE: "100", MOST: "2"})
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW), record_in)
    assert dict(found.expired) == {965: "not among the newest 2 of branch main"}
    assert found.kept[955] == ("not older than 1970-01-01 00:00:00 UTC, branch own",)
    assert expired(metadata, older_than_ms=900) == expired(metadata, retain_last=1) == []
    assert expired(replace(metadata, properties={AGE: "100", MOST: "2", FEWEST: "3"})) == []
    assert (
        expired(replace(metadata, properties={AGE: "100", MOST: "0"})) == []
    )  # no valid bound, which other programs set
    keyed = table(parents, {MAIN: Ref(snapshot_id=975)}, summaries={960: {IDEMPOTENCY_KEY: "a"}})
    assert expired(replace(keyed, properties={AGE: "100", MOST: "1", RECORD_AGE: "100"})) == [950, 955]


def test_settings_of_a_branch_come_before_arguments_and_properties():
    parents = line(5, start=860)
    ref = Ref(snapshot_id=900, min_snapshots_to_keep=2, max_snapshot_age_ms=1)
    assert expired(table(parents, {MAIN: ref}), older_than_ms=0, retain_last=5) == [860, 870, 880]
    ref = Ref(snapshot_id=900, max_snapshot_age_ms=200)
    assert expired(table(parents, {MAIN: ref}), older_than_ms=NOW) == []


def test_a_tag_keeps_its_snapshot_but_not_the_ancestors():
    metadata = table(line(5, start=800), {MAIN: Ref(snapshot_id=840), "v1": Ref(snapshot_id=820, type="tag")})
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW), record_in)
    assert list(found.expired) == [800, 810, 830]
    assert found.kept[820] == ("tag v1",)


def test_refs_older_than_they_may_become_go_with_their_snapshots_but_never_main():
    refs = {
        MAIN: Ref(snapshot_id=840, max_ref_age_ms=1),
        "old": Ref(snapshot_id=810, max_ref_age_ms=189),
        "kept": Ref(snapshot_id=820, max_ref_age_ms=180, type="tag"),
    }
    metadata = table(line(5, start=800), refs)
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW), record_in)
    assert list(found.expired_refs) == ["old"]
    assert list(found.expired) == [800, 810, 830]
    by_property = table(line(5, start=800), {name: Ref(snapshot_id=ref.snapshot_id) for name, ref in refs.items()})
    by_property = replace(by_property, properties={AGE: "100", REF_AGE: "185"})
    assert list(apply_policy(by_property, ExpirePolicy(now_ms=NOW), record_in).expired_refs) == ["old"]


def test_snapshots_in_no_branch_stay_while_they_are_young():
    parents = {**line(2, start=980), 985: 980, 700: None}
    metadata = table(parents, {MAIN: Ref(snapshot_id=990)})
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW), record_in)
    assert dict(found.expired) == {700: "in no branch or tag"}
    assert "staged or rolled back" in found.kept[985][0]
    assert expired(metadata, older_than_ms=NOW) == [980, 985, 700]


def test_chosen_snapshots_expire_alone_unless_a_ref_needs_them():
    metadata = table(line(5, start=800), {MAIN: Ref(snapshot_id=840), "v1": Ref(snapshot_id=820, type="tag")})
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW, snapshot_ids=frozenset({810, 820})), record_in)
    assert dict(found.expired) == {810: "chosen by its id"}
    assert dict(found.needed) == {820: "tag v1"}
    assert dict(found.expired_refs) == {}
    assert found.kept[800] == ("not chosen",)


def test_a_promised_record_keeps_the_snapshots_from_the_head_to_it():
    summaries = {820: {IDEMPOTENCY_KEY: "k"}, 800: {STREAM_QUERY: "q", STREAM_BATCH: "7"}, 830: {STREAM_QUERY: "q"}}
    metadata = table(line(5, start=800), {MAIN: Ref(snapshot_id=840)}, summaries=summaries)
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW, older_than_ms=NOW), record_in)
    assert list(found.expired) == [800, 810]  # the stream has a newer record
    assert found.kept[820] == ("newest record of idempotency key 'k', branch main",)
    assert found.kept[840][1] == "between branch main and the record of idempotency key 'k'"
    chosen = apply_policy(metadata, ExpirePolicy(now_ms=NOW, snapshot_ids=frozenset({820, 830, 810})), record_in)
    assert list(chosen.needed) == [820, 830]
    assert list(chosen.expired) == [810]


@pytest.mark.parametrize(("age", "kept"), [(171, {830, 840}), (170, {840}), (0, {840})])
def test_a_record_is_promised_for_the_time_that_the_property_states(age, kept):
    metadata = table(line(5, start=800), {MAIN: Ref(snapshot_id=840)}, summaries={830: {STREAM_QUERY: "q"}})
    metadata = replace(metadata, properties={RECORD_AGE: str(age)})
    found = apply_policy(metadata, ExpirePolicy(now_ms=NOW, older_than_ms=NOW), record_in)
    assert set(found.kept) == kept


def test_the_record_of_a_staged_change_is_promised_too():
    metadata = table({800: None, 805: 800}, {MAIN: Ref(snapshot_id=800)}, summaries={805: {IDEMPOTENCY_KEY: "k"}})
    assert expired(metadata, older_than_ms=NOW) == []
    assert expired(replace(metadata, properties={RECORD_AGE: "1"}), older_than_ms=NOW) == [805]


def test_a_table_without_refs_and_one_with_a_gap_in_its_history():
    assert expired(table({1: None, 2: 1}, {})) == [1, 2]
    assert expired(table({900: 890, 990: 980}, {MAIN: Ref(snapshot_id=990)}), older_than_ms=950) == [900]


def test_times_are_shown_in_utc():
    assert at_time(1_700_000_000_123) == "2023-11-14 22:13:20 UTC"


# Against a naive version


@st.composite
def tables(draw):
    count = draw(st.integers(1, 9))
    ids = draw(st.permutations(range(1, count + 1)))
    parents = {key: draw(st.sampled_from([None, 99, *ids[:place]])) for place, key in enumerate(ids)}
    times = {key: draw(st.integers(NOW - 12, NOW)) for key in ids}
    keys = st.one_of(
        st.just({}),
        st.just({}),
        st.sampled_from([{IDEMPOTENCY_KEY: "a"}, {IDEMPOTENCY_KEY: "b"}, {STREAM_QUERY: "q", STREAM_BATCH: "1"}]),
    )
    summaries = {key: draw(keys) for key in ids}
    small = st.one_of(st.none(), st.integers(1, 12))
    refs = {}
    for name in draw(st.sets(st.sampled_from([MAIN, "b", "c", "t", "u"]))):
        if name in "tu":
            refs[name] = Ref(snapshot_id=draw(st.sampled_from(ids)), type="tag", max_ref_age_ms=draw(small))
        else:
            refs[name] = Ref(
                snapshot_id=draw(st.sampled_from(ids)),
                min_snapshots_to_keep=draw(small),
                max_snapshot_age_ms=draw(small),
                max_ref_age_ms=draw(small),
            )
    properties = {key: str(draw(st.integers(1, 12))) for key in draw(st.sets(st.sampled_from([AGE, FEWEST, REF_AGE])))}
    properties[RECORD_AGE] = str(draw(st.integers(0, 12)))
    metadata = replace(table(parents, refs, times, summaries), properties=properties)
    policy = ExpirePolicy(
        now_ms=NOW,
        older_than_ms=draw(st.one_of(st.none(), st.integers(NOW - 12, NOW))),
        retain_last=draw(st.one_of(st.none(), st.integers(1, 5))),
        snapshot_ids=draw(st.one_of(st.just(frozenset()), st.frozensets(st.sampled_from(ids)))),
    )
    return metadata, policy


def naive(metadata: TableMetadata, policy: ExpirePolicy) -> tuple[set[int], set[str]]:
    """The rule, written down as slowly and plainly as possible: what expires."""
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    chosen_only = len(policy.snapshot_ids) > 0 and policy.older_than_ms is None and policy.retain_last is None

    def number(key: str, default: int) -> int:
        return int(metadata.properties.get(key, default))

    def is_old_ref(name: str, ref: Ref) -> bool:
        most = number(REF_AGE, 2**63 - 1) if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return name != MAIN and not chosen_only and NOW - by_id[ref.snapshot_id].timestamp_ms > most

    def chain(head: int | None) -> list[Snapshot]:
        return [] if head not in by_id else [by_id[head], *chain(by_id[head].parent_id)]

    gone = {name for name, ref in metadata.refs.items() if is_old_ref(name, ref)}
    staying = {name: ref for name, ref in metadata.refs.items() if name not in gone}
    lines = [(ref, chain(ref.snapshot_id)) for ref in staying.values() if ref.type == "branch"]
    cutoff = NOW - number(AGE, 432_000_000) if policy.older_than_ms is None else policy.older_than_ms
    on_branches = {snapshot.snapshot_id for _, found in lines for snapshot in found}
    firm = {ref.snapshot_id for ref in staying.values()}
    youngest = NOW - number(RECORD_AGE, 0)
    for _, found in lines:
        for place, snapshot in enumerate(found):
            record = record_in(snapshot)
            is_newest = all(record_in(newer) != record for newer in found[:place])
            if record is not None and is_newest and snapshot.timestamp_ms > youngest:
                firm |= {other.snapshot_id for other in found[: place + 1]}
    firm |= {
        key
        for key, snapshot in by_id.items()
        if key not in on_branches and record_in(snapshot) is not None and snapshot.timestamp_ms > youngest
    }
    kept: set[int] = set()
    for ref, found in lines:
        fewest = policy.retain_last if policy.retain_last is not None else number(FEWEST, 1)
        fewest = fewest if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        oldest = cutoff if ref.max_snapshot_age_ms is None else NOW - ref.max_snapshot_age_ms
        for place, snapshot in enumerate(found):
            if snapshot.timestamp_ms < oldest and place >= fewest:
                break
            kept.add(snapshot.snapshot_id)
    kept |= {key for key, snapshot in by_id.items() if key not in on_branches and snapshot.timestamp_ms >= cutoff}
    by_rule = set() if chosen_only else set(by_id) - kept
    return (by_rule | set(policy.snapshot_ids)) - firm, gone


@given(tables())
def test_the_rule_is_that_of_the_naive_version(drawn):
    metadata, policy = drawn
    found = apply_policy(metadata, policy, record_in)
    assert (set(found.expired), set(found.expired_refs)) == naive(metadata, policy)
    assert set(found.expired).isdisjoint(found.kept)
    assert set(found.expired) | set(found.kept) == {snapshot.snapshot_id for snapshot in metadata.snapshots}
    assert all(len(reasons) > 0 for reasons in found.kept.values())
