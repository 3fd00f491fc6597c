"""The field tables per version, beside the tables of the specification itself."""

from __future__ import annotations

import re

import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata import version_rules as vr
from icefloe.model.metadata.version_rules import METADATA_FIELDS, Presence, fields, presence, required, written
from support.shared_files import shared

TABLES = {
    "METADATA_FIELDS": vr.METADATA_FIELDS,
    "SNAPSHOT_FIELDS": vr.SNAPSHOT_FIELDS,
    "MANIFEST_LIST_FIELDS": vr.MANIFEST_LIST_FIELDS,
    "MANIFEST_KEYS": vr.MANIFEST_KEYS,
    "MANIFEST_ENTRY_FIELDS": vr.MANIFEST_ENTRY_FIELDS,
    "DATA_FILE_FIELDS": vr.DATA_FILE_FIELDS,
}
WORDS = {"_required_": Presence.REQUIRED, "_optional_": Presence.OPTIONAL, "": Presence.ABSENT}
SPEC_ROW = re.compile(r"\|\s*(_\w+_|)\s*\|\s*(_\w+_|)\s*\|[\s*`~]*(?:\d+\s+)?([a-z_-]+)[`*~\s]*\|")
# Where we know better than the text of versions 1 and 2: key and what it says of them.
DIFFERENT = {
    "refs": (Presence.ABSENT, Presence.OPTIONAL),  # version 1 keeps them too
    "file_ordinal": (Presence.OPTIONAL, Presence.ABSENT),  # "do not write"
    "sort_columns": (Presence.OPTIONAL, Presence.ABSENT),  # "do not write"
}
# Added after the text was written.
LATER = {"partition-statistics", "referenced_data_file"}


def spec_table(after: str, first: str) -> dict[str, tuple[Presence, Presence]]:
    """The rows of the table that comes after some words and starts with a field."""
    folder = shared("spec")
    text = next(p for p in sorted(folder.iterdir()) if p.name.startswith("000")).read_text(encoding="utf-8")
    rows: dict[str, tuple[Presence, Presence]] = {}
    for line in text[text.index(after) :].splitlines():
        found = SPEC_ROW.match(line)
        if found is not None and (len(rows) > 0 or found[3] == first):
            rows[found[3]] = WORDS[found[1]], WORDS[found[2]]
        elif found is None and len(rows) > 0:
            break
    return rows


@pytest.mark.parametrize(
    ("table", "after", "first"),
    [
        ("METADATA_FIELDS", "#### Table Metadata Fields", "format-version"),
        ("SNAPSHOT_FIELDS", "A snapshot consists of the following fields", "snapshot-id"),
        ("MANIFEST_LIST_FIELDS", "Manifest list files store `manifest_file`", "manifest_path"),
        ("MANIFEST_KEYS", "A manifest file must store the partition spec", "schema"),
        ("MANIFEST_ENTRY_FIELDS", "struct called `manifest_entry`", "status"),
        ("DATA_FILE_FIELDS", "`data_file` is a struct with the following fields", "content"),
    ],
)
def test_versions_1_and_2_are_as_the_specification_has_them(table, after, first):
    ours = {field: row[:2] for field, row in TABLES[table].items() if row[:2] != (Presence.ABSENT, Presence.ABSENT)}
    theirs = spec_table(after, first)

    assert len(theirs) >= 5
    assert {field: theirs[field] for field in DIFFERENT if field in theirs} == {
        field: row for field, row in DIFFERENT.items() if field in theirs
    }
    agreed = set(theirs) - set(DIFFERENT)
    assert {field: ours.get(field) for field in agreed} == {field: theirs[field] for field in agreed}
    assert set(ours) - set(theirs) <= LATER


def test_what_version_3_adds_is_absent_before():
    for table, field in (
        (vr.METADATA_FIELDS, "next-row-id"),
        (vr.METADATA_FIELDS, "encryption-keys"),
        (vr.SNAPSHOT_FIELDS, "first-row-id"),
        (vr.SNAPSHOT_FIELDS, "added-rows"),
        (vr.SNAPSHOT_FIELDS, "key-id"),
        (vr.MANIFEST_LIST_FIELDS, "first_row_id"),
        (vr.DATA_FILE_FIELDS, "first_row_id"),
        (vr.DATA_FILE_FIELDS, "content_offset"),
        (vr.DATA_FILE_FIELDS, "content_size_in_bytes"),
    ):
        assert [written(table, field, version) for version in (1, 2, 3)] == [False, False, True], field


def test_version_4_has_no_manifest_lists():
    for table in (vr.MANIFEST_LIST_FIELDS, vr.MANIFEST_ENTRY_FIELDS, vr.DATA_FILE_FIELDS):
        assert fields(table, 4) == ()
    assert required(vr.MANIFEST_KEYS, 4) == ("format-version", "content")
    assert "root-manifest" in required(vr.SNAPSHOT_FIELDS, 4)
    assert presence(vr.SNAPSHOT_FIELDS, "manifest-list", 4) is Presence.OPTIONAL
    assert written(vr.METADATA_FIELDS, "expressions", 4)
    assert not written(vr.METADATA_FIELDS, "expressions", 3)


def test_required_fields_are_some_of_those_a_version_may_write():
    for table in TABLES.values():
        for version in vr.VERSIONS:
            assert set(required(table, version)) <= set(fields(table, version)) <= set(table)
    assert vr.required(METADATA_FIELDS, 1) == (
        *("format-version", "location", "last-updated-ms", "last-column-id", "schema", "partition-spec"),
    )
    assert "schema" not in fields(METADATA_FIELDS, 2)
    assert vr.required(vr.SNAPSHOT_FIELDS, 1) == ("snapshot-id", "timestamp-ms")
    assert "manifests" in vr.fields(vr.SNAPSHOT_FIELDS, 1)


def test_a_field_or_version_that_does_not_exist_is_an_error():
    with pytest.raises(InputError, match="'nope' is not a field"):
        presence(vr.SNAPSHOT_FIELDS, "nope", 2)
    for version in (0, 5):
        with pytest.raises(UnsupportedError):
            presence(vr.SNAPSHOT_FIELDS, "summary", version)


def test_the_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        vr.SNAPSHOT_FIELDS["summary"] = ()
