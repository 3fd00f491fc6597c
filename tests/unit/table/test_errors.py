"""Errors say whether the call may be made again, and what to do."""

from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import icefloe
from icefloe.io.local import LocalFileIO
from support.tables import new_catalog


def test_an_error_has_the_values_of_its_class_unless_it_is_given_others() -> None:
    plain = icefloe.ConflictError("in the way", files=["a"])
    special = icefloe.ConflictError("gone", retryable=False, next_step="Load it again.", table="t")
    assert (plain.retryable, plain.next_step) == (True, icefloe.ConflictError.next_step)
    assert (special.retryable, special.next_step) == (False, "Load it again.")
    assert (plain.context, special.context) == ({"files": ["a"]}, {"table": "t"})
    assert str(special) == "gone"


@pytest.mark.parametrize("kind", [icefloe.ConflictError, icefloe.StorageError, icefloe.InputError])
def test_an_error_survives_a_process_boundary(kind: type[icefloe.IcefloeError]) -> None:
    error = pickle.loads(pickle.dumps(kind("told", retryable=False, next_step="Look.", table="t")))
    assert (str(error), error.retryable, error.next_step, error.context) == ("told", False, "Look.", {"table": "t"})


def test_only_errors_after_which_nothing_has_changed_are_retryable() -> None:
    retryable = {error for error in vars(icefloe.errors).values() if getattr(error, "retryable", None) is True}
    assert retryable == {icefloe.ConflictError, icefloe.CommitFailed, icefloe.StorageError}


def test_a_table_that_was_created_again_is_no_conflict_to_repeat(tmp_path: Path) -> None:
    cat = new_catalog(tmp_path)
    table = cat.create_table("db.t", schema="id bigint")
    cat.drop_table("db.t")
    cat.create_table("db.t", schema="id bigint")
    with pytest.raises(icefloe.ConflictError) as raised:
        table.append(pa.table({"id": [1]}))
    assert not raised.value.retryable
    assert raised.value.next_step == "Load the table again by its name; it is another table now."


def test_a_file_that_cannot_be_removed_is_no_conflict_to_repeat(tmp_path: Path) -> None:
    table = new_catalog(tmp_path).create_table("db.t", schema="id bigint")
    table.append(pa.table({"id": [1]}))
    with pytest.raises(icefloe.ConflictError) as raised:
        table.remove_files([f"{table.location}/data/absent.parquet"])
    assert not raised.value.retryable


@pytest.mark.parametrize(("code", "retryable"), [(errno.EACCES, False), (errno.ENOSPC, False), (errno.EIO, True)])
def test_a_storage_error_is_retryable_unless_somebody_must_act(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, retryable: bool
) -> None:
    def fails(*arguments: object, **options: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(icefloe.StorageError) as raised:
        LocalFileIO().write_new(f"file://{tmp_path}/f", b"x")
    assert (raised.value.errno, raised.value.retryable) == (code, retryable)
