"""The worked examples of the proposal as whole histories: every root and leaf row by row, what lives and what changed.

A line names the kind of a row, the file, the status, the snapshot, the data and file sequence numbers, the number of
rows, for a manifest its counts of added, existing and deleted files and rows and its least sequence number, the first
row id, the file it refers to, and the positions of a vector.
"""

from __future__ import annotations

from pathlib import Path

from version_4.scenes import TO_LEAVES, TO_ROOT, Stage, tens

M1 = "DATA_MANIFEST M1 {} by 1 at 1/1: 3 rows of +3=0-0 files +30=0-0 rows since 1 ids 0.."


def new_file(name: str, *, rows: int = 10) -> str:
    """A data file in the leaf of the snapshot that added it: its numbers are those of the leaf."""
    return f"DATA {name} ADDED by {{}} at -/-: {rows} rows"


def inside(snapshot: int, *names: str) -> list[str]:
    return [new_file(name).format(snapshot) for name in names]


def check(stage: Stage, root: list[str], *, live: str, changes: str, ids: list[int] | None = None) -> None:
    """The head is this root with these live files, and made these changes."""
    assert stage.root() == root
    assert stage.live() == sorted(live.split())
    assert stage.changes() == sorted(changes.split())
    if ids is not None:
        assert stage.ids() == ids


def with_leaf(folder: Path) -> Stage:
    """Snapshot 1 of several examples: root A has one ADDED data manifest M1 of D1, D2 and D3."""
    stage = Stage(folder, **TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.call("M1")
    check(stage, [M1.format("ADDED")], live="D1 D2 D3", changes="+D1 +D2 +D3", ids=tens(1, 2, 3))
    assert stage.leaf("M1") == inside(1, "D1", "D2", "D3")
    stage.settings(TO_ROOT)
    return stage


def test_appends_to_the_root_manifest(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.append("D4")
    check(
        stage,
        [M1.format("EXISTING"), "DATA D4 ADDED by 2 at 2/2: 10 rows ids 30.."],
        live="D1 D2 D3 D4",
        changes="+D4",
        ids=tens(1, 2, 3, 4),
    )
    stage.append("D5")
    check(
        stage,
        [
            M1.format("EXISTING"),
            "DATA D4 EXISTING by 2 at 2/2: 10 rows ids 30..",
            "DATA D5 ADDED by 3 at 3/3: 10 rows ids 40..",
        ],
        live="D1 D2 D3 D4 D5",
        changes="+D5",
        ids=tens(1, 2, 3, 4, 5),
    )
    assert stage.leaf("M1") == inside(1, "D1", "D2", "D3")


def test_appends_to_the_root_manifest_using_new_data_manifests(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.settings(TO_LEAVES)
    stage.append("D4", "D5", "D6")
    stage.call("M2")
    check(
        stage,
        [
            M1.format("EXISTING"),
            "DATA_MANIFEST M2 ADDED by 2 at 2/2: 3 rows of +3=0-0 files +30=0-0 rows since 2 ids 30..",
        ],
        live="D1 D2 D3 D4 D5 D6",
        changes="+D4 +D5 +D6",
        ids=tens(1, 2, 3, 4, 5, 6),
    )
    assert stage.leaf("M1") == inside(1, "D1", "D2", "D3")
    assert stage.leaf("M2") == inside(2, "D4", "D5", "D6")


def test_removing_a_file_from_the_root_manifest(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1", "D2")
    check(
        stage,
        ["DATA D1 ADDED by 1 at 1/1: 10 rows ids 0..", "DATA D2 ADDED by 1 at 1/1: 10 rows ids 10.."],
        live="D1 D2",
        changes="+D1 +D2",
    )
    stage.remove("D1")
    check(
        stage,
        ["DATA D1 DELETED by 2 at 1/1: 10 rows ids 0..", "DATA D2 EXISTING by 1 at 1/1: 10 rows ids 10.."],
        live="D2",
        changes="-D1",
        ids=tens(2),
    )
    stage.append("D3")  # the deleted row lives for one snapshot only
    check(
        stage,
        ["DATA D2 EXISTING by 1 at 1/1: 10 rows ids 10..", "DATA D3 ADDED by 3 at 3/3: 10 rows ids 20.."],
        live="D2 D3",
        changes="+D3",
        ids=tens(2, 3),
    )


def test_removing_a_file_from_a_leaf_manifest(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.remove("D2")
    check(
        stage,
        [M1.format("EXISTING"), "MANIFEST_DV ADDED by 2 at 2/2: 1 rows for M1 [1]"],
        live="D1 D3",
        changes="-D2",
        ids=tens(1, 3),
    )
    assert stage.leaf("M1") == inside(1, "D1", "D2", "D3")
    stage.remove("D3")  # the vectors are merged, the old one tells what was hidden before
    check(
        stage,
        [
            M1.format("EXISTING"),
            "MANIFEST_DV DELETED by 3 at 2/2: 1 rows for M1 [1]",
            "MANIFEST_DV ADDED by 3 at 3/3: 2 rows for M1 [1, 2]",
        ],
        live="D1",
        changes="-D3",
        ids=tens(1),
    )


def test_overwriting_files_in_the_root_manifest(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1")
    check(stage, ["DATA D1 ADDED by 1 at 1/1: 10 rows ids 0.."], live="D1", changes="+D1", ids=tens(1))
    stage.overwrite("D1", "D2")
    check(
        stage,
        ["DATA D1 DELETED by 2 at 1/1: 10 rows ids 0..", "DATA D2 ADDED by 2 at 2/2: 10 rows ids 10.."],
        live="D2",
        changes="-D1 +D2",
        ids=tens(2),
    )
    stage.overwrite("D2", "D3")
    check(
        stage,
        ["DATA D2 DELETED by 3 at 2/2: 10 rows ids 10..", "DATA D3 ADDED by 3 at 3/3: 10 rows ids 20.."],
        live="D3",
        changes="-D2 +D3",
        ids=tens(3),
    )


def test_overwriting_files_in_a_leaf_manifest(tmp_path: Path) -> None:
    stage = with_leaf(tmp_path)
    stage.overwrite("D2", "D4")
    check(
        stage,
        [
            M1.format("EXISTING"),
            "MANIFEST_DV ADDED by 2 at 2/2: 1 rows for M1 [1]",
            "DATA D4 ADDED by 2 at 2/2: 10 rows ids 30..",
        ],
        live="D1 D3 D4",
        changes="-D2 +D4",
        ids=tens(1, 3, 4),
    )
    assert stage.leaf("M1") == inside(1, "D1", "D2", "D3")


def test_a_row_delta_in_the_root_manifest_only(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.append("D1")
    check(stage, ["DATA D1 ADDED by 1 at 1/1: 10 rows ids 0.."], live="D1", changes="+D1")
    stage.upsert(12, 18)
    stage.call("D2", "DV1")
    check(
        stage,
        [
            "DATA D1 EXISTING by 1 at 1/1: 10 rows ids 0..",
            "DATA D2 ADDED by 2 at 2/2: 2 rows ids 10..",
            "DV DV1 ADDED by 2 at 2/2: 2 rows for D1 [2, 8]",
        ],
        live="D1 D2 DV1",
        changes="+D2 +DV1",
        ids=tens(1),
    )


def test_a_complex_row_delta_with_modified_delete_vectors(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **TO_LEAVES)
    stage.append("D1", "D2")
    stage.call("DM1")
    stage.table.delete("id in (10, 20, 21)")
    stage.call("DVM1", "DV1", "DV2")
    data = "DATA_MANIFEST DM1 EXISTING by 1 at 1/1: 2 rows of +2=0-0 files +20=0-0 rows since 1 ids 0.."
    deletes = "DELETE_MANIFEST DVM1 {} by 2 at 2/2: 2 rows of +2=0-0 files +3=0-0 rows since 2 for DM1"
    check(
        stage,
        [data, deletes.format("ADDED")],
        live="D1 D2 DV1 DV2",
        changes="+DV1 +DV2",
        ids=sorted({*tens(1, 2)} - {10, 20, 21}),
    )
    listed = ["DV DV1 ADDED by 2 at -/-: 1 rows for D1 [0]", "DV DV2 ADDED by 2 at -/-: 2 rows for D2 [0, 1]"]
    assert stage.leaf("DVM1") == listed
    stage.upsert(11, 12)
    stage.call("DM2", "DVM2", "D3", "DV4")
    check(
        stage,
        [
            data,
            deletes.format("EXISTING"),
            "MANIFEST_DV ADDED by 3 at 3/3: 1 rows for DVM1 [0]",
            "DATA_MANIFEST DM2 ADDED by 3 at 3/3: 1 rows of +1=0-0 files +2=0-0 rows since 3 ids 20..",
            "DELETE_MANIFEST DVM2 ADDED by 3 at 3/3: 1 rows of +1=0-0 files +3=0-0 rows since 3 for DM1",
        ],
        live="D1 D2 D3 DV2 DV4",
        changes="-DV1 +DV4 +D3",
        ids=sorted({*tens(1, 2)} - {10, 20, 21}),
    )
    assert stage.leaf("DM1") == inside(1, "D1", "D2")
    assert stage.leaf("DVM1") == listed
    assert stage.leaf("DM2") == [new_file("D3", rows=2).format(3)]
    assert stage.leaf("DVM2") == ["DV DV4 ADDED by 3 at -/-: 3 rows for D1 [0, 1, 2]"]  # what DV1 had, and more


def test_manifest_compaction_during_an_append(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **TO_LEAVES)
    stage.append("D1", "D2", "D3")
    stage.call("M1")
    stage.append("D4", "D5", "D6")
    stage.call("M2")
    stage.settings(TO_ROOT)
    stage.remove("D1", "D5")
    m2 = "DATA_MANIFEST M2 EXISTING by 2 at 2/2: 3 rows of +3=0-0 files +30=0-0 rows since 2 ids 30.."
    check(
        stage,
        [
            M1.format("EXISTING"),
            m2,
            "MANIFEST_DV ADDED by 3 at 3/3: 1 rows for M1 [0]",
            "MANIFEST_DV ADDED by 3 at 3/3: 1 rows for M2 [1]",
        ],
        live="D2 D3 D4 D6",
        changes="-D1 -D5",
        ids=tens(2, 3, 4, 6),
    )
    before = row_ids(stage)
    stage.settings({"commit.manifest.min-count-to-merge": "2"})
    stage.append("D7")
    stage.call("M3")
    assert sorted(stage.root()) == [
        "DATA D7 ADDED by 4 at 4/4: 10 rows ids 60..",
        "DATA_MANIFEST M3 EXISTING by 4 at 4/4: 4 rows of +0=4-0 files +0=40-0 rows since 1 ids 70..",
    ]
    assert stage.leaf("M3") == [
        "DATA D2 EXISTING by 1 at 1/1: 10 rows ids 10..",
        "DATA D3 EXISTING by 1 at 1/1: 10 rows ids 20..",
        "DATA D4 EXISTING by 2 at 2/2: 10 rows ids 30..",
        "DATA D6 EXISTING by 2 at 2/2: 10 rows ids 50..",
    ]
    assert stage.live() == ["D2", "D3", "D4", "D6", "D7"]
    assert stage.changes() == ["+D7"]
    assert stage.ids() == tens(2, 3, 4, 6, 7)
    assert {name: first for name, first in row_ids(stage).items() if name != "D7"} == before
    assert (stage.snapshots[-1].first_row_id, stage.snapshots[-1].added_rows) == (60, 10)
    stage.append("D8")  # and the next root is as quiet as any
    assert [line.split(" by ")[0] for line in stage.root() if "D8" not in line] == [
        line.split(" by ")[0].replace("ADDED", "EXISTING") for line in stage.root(back=1)
    ]


def test_compaction_during_a_removal_leaves_the_touched_manifest_alone(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **TO_LEAVES)
    for number in (1, 3, 5):
        stage.append(f"D{number}", f"D{number + 1}")
        stage.call(f"M{(number + 1) // 2}")
    stage.settings({**TO_ROOT, "commit.manifest.min-count-to-merge": "2"})
    stage.remove("D1")
    stage.call("M4")
    assert sorted(stage.root()) == [
        "DATA_MANIFEST M1 EXISTING by 1 at 1/1: 2 rows of +2=0-0 files +20=0-0 rows since 1 ids 0..",
        "DATA_MANIFEST M4 EXISTING by 4 at 4/4: 4 rows of +0=4-0 files +0=40-0 rows since 2 ids 60..",
        "MANIFEST_DV ADDED by 4 at 4/4: 1 rows for M1 [0]",
    ]
    assert stage.leaf("M4") == [
        "DATA D3 EXISTING by 2 at 2/2: 10 rows ids 20..",
        "DATA D4 EXISTING by 2 at 2/2: 10 rows ids 30..",
        "DATA D5 EXISTING by 3 at 3/3: 10 rows ids 40..",
        "DATA D6 EXISTING by 3 at 3/3: 10 rows ids 50..",
    ]
    assert stage.live() == ["D2", "D3", "D4", "D5", "D6"]
    assert stage.changes() == ["-D1"]
    assert (stage.snapshots[-1].first_row_id, stage.snapshots[-1].added_rows) == (60, 0)
    stage.append("D7")  # now the vector is settled, so M1 may be merged too, without what it hides
    stage.call("M5")
    assert [line.split(" by ")[0] for line in stage.leaf("M5")] == [f"DATA D{n} EXISTING" for n in range(2, 7)]
    assert stage.changes() == ["+D7"]
    assert stage.ids() == tens(2, 3, 4, 5, 6, 7)


def row_ids(stage: Stage) -> dict[str, int]:
    """The first row id of every live data file."""
    tasks = stage.table.scan().plan().tasks.to_pylist()
    return {stage.names[stage.stored_location(task["location"]), None]: task["first_row_id"] for task in tasks}
