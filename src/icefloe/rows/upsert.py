"""Replaces rows by key: found and deleted by position, or deleted by equality deletes (spec: Row-level Deletes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from typing import Any

from icefloe.commit.operations.replace_keys import ReplaceKeys
from icefloe.commit.phases import Phase
from icefloe.engines.choose import engine_of
from icefloe.engines.engine import Engine
from icefloe.errors import InputError
from icefloe.model.entries import concat
from icefloe.model.metadata.properties import MERGE_ISOLATION, MERGE_MODE, UPSERT_DELETES
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.schema.schema import Schema
from icefloe.rows.prepared import Prepared, RowChange, prepared
from icefloe.rows.removal import remove_rows
from icefloe.rows.target import Scratch, Target


def key_columns(on: Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
    """The key columns of an upsert: ``on``, or else the identifier fields of the schema."""
    keys = [schema.names[id_] for id_ in schema.identifier_field_ids] if on is None else on
    if isinstance(keys, str) or len(keys) == 0:
        raise InputError("upsert: give the key columns as a list, such as on=['id']")
    return tuple(keys)


class DeleteKind(StrEnum):
    """How an upsert deletes the rows that it replaces."""

    POSITION = "position"  # finds them, and deletes them by position
    EQUALITY = "equality"  # writes their keys to equality delete files, which readers apply


def delete_kind(deletes: str | None, properties: Mapping[str, str]) -> DeleteKind:
    """The kind of deletes of an upsert: ``deletes``, or else the property ``write.upsert.deletes``."""
    text = UPSERT_DELETES.of(properties) if deletes is None else deletes
    known = {str(kind): kind for kind in DeleteKind}
    if text not in known:
        what = "upsert: deletes" if deletes is not None else f"property {UPSERT_DELETES.name}"
        raise InputError(f"{what}: expected {' or '.join(known)}, got {text!r}")
    return known[text]


def upsert(data: Any, on: Sequence[str] | None, *, deletes: str | None = None) -> RowChange:
    """Replace rows by key and add the others, as one snapshot; ``deletes`` is the name of a ``DeleteKind``."""
    engine = engine_of(data)

    def prepare(target: Target) -> Prepared:
        keys = key_columns(on, target.metadata.schema)
        is_by_value = delete_kind(deletes, target.properties) is DeleteKind.EQUALITY
        return (_by_value if is_by_value else _by_position)(target, data, keys, engine)

    return RowChange(engine=engine, prepare=prepare, rows=data)


def _by_value(target: Target, rows: object, on: tuple[str, ...], engine: Engine) -> Prepared:
    """Writes equality deletes, without reading the table; all rows get new ids."""
    table, timer = target.table, target.timer
    with ExitStack() as kept, Scratch(target.io) as scratch:
        with timer.of(Phase.MATCH):
            source = kept.enter_context(engine.upsert_source(table, rows, on))
        with timer.of(Phase.WRITE):
            deletes = scratch.keep(engine.write_key_deletes(table, source))
            new = scratch.keep(engine.write(table, source.rows))
    if new.num_rows == 0:
        return Prepared(operation=Operation.OVERWRITE)
    specs = frozenset(spec.spec_id for spec in table.metadata.specs)
    update = ReplaceKeys(added=concat([new, deletes]), specs=specs, branch=target.branch)
    return Prepared(operation=Operation.OVERWRITE, update=update)


def _by_position(target: Target, rows: object, on: tuple[str, ...], engine: Engine) -> Prepared:
    """Finds the replaced rows; a row that replaces another keeps its id."""
    timer = target.timer
    with ExitStack() as kept, Scratch(target.io) as scratch:
        with timer.of(Phase.MATCH):
            source = kept.enter_context(engine.upsert_source(target.table, rows, on))
        files = target.planned(source.filter)
        with timer.of(Phase.MATCH):
            matches = engine.find_keys(files, source)
        with timer.of(Phase.WRITE):
            new = scratch.keep(engine.write(target.table, matches.rows, lineage=matches.lineage))
            if new.num_rows == 0:
                return Prepared(operation=Operation.OVERWRITE)
            changes = remove_rows(target, files, matches.positions, engine, MERGE_MODE)
    return prepared(target, files.plan.filter, MERGE_ISOLATION, changes.with_added(new))
