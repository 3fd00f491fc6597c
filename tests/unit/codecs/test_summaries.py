"""Summaries of V4 leave out zeros, and nothing that reads a summary notices."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icefloe.codecs.json.snapshots import with_zeros, without_zeros
from icefloe.model.metadata.snapshots import SummaryKey
from support.metadata_documents import metadata_json
from support.tables import VERSIONS, new_catalog

TOTALS = {"total-data-files": "0", "total-records": "0", "total-files-size": "0"}
DELETES = {"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0"}
MANIFESTS = {"manifests-created": "1", "manifests-kept": "0", "manifests-replaced": "0"}


@pytest.mark.parametrize("version", VERSIONS)
def test_summaries_of_version_4_are_stored_without_zeros(tmp_path, version):
    """Four keys of each snapshot said 0: an eighth of the metadata."""
    cat = new_catalog(tmp_path)
    table = cat.create_table("db.t", schema="id bigint", format_version=version)
    table.append(pa.table({"id": [1, 2]}))
    table.delete("id > 0")
    for stored, snapshot in zip(metadata_json(table.metadata_location)["snapshots"], table.snapshots, strict=True):
        zeros = {key for key, value in stored["summary"].items() if value == "0"}
        assert (zeros <= {"total-data-files"}) == (version == 4)
        assert snapshot.summary["total-equality-deletes"] == "0"
    reopened = new_catalog(tmp_path).load_table("db.t")
    assert [s.summary for s in reopened.snapshots] == [s.summary for s in table.snapshots]
    assert reopened.snapshots[-1].summary["total-data-files"] == "0"
    reopened.append(pa.table({"id": [3]}))
    assert reopened.snapshots[-1].summary["total-records"] == "1"


@pytest.mark.parametrize(
    "summary",
    [
        {},
        {"operation": "append"},
        {**TOTALS, **DELETES, **MANIFESTS},
        {**TOTALS, **DELETES, "total-data-files": "7", "total-records": "70"},
        {**MANIFESTS, "manifests-kept": "3"},
        TOTALS,  # the other totals are unknown
        {"total-records": "0", "manifests-kept": "0"},
    ],
)
def test_a_summary_comes_back_as_it_was(summary):
    assert with_zeros(json.loads(json.dumps(without_zeros(summary)))) == summary


def test_an_unknown_total_does_not_become_zero():
    known = {"total-data-files": "7", "total-records": "70"}
    assert with_zeros(without_zeros(known)) == {"total-records": "70"}
    assert str(SummaryKey.TOTAL_DELETE_FILES) not in with_zeros({"operation": "append", "total-records": "70"})
