"""Rows replaced by key: looked up and deleted by position, or by equality deletes (spec: Row-level Deletes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from icefloe.commit.operations.replace_keys import ReplaceKeys
from icefloe.engines.engine import Engine
from icefloe.errors import InputError
from icefloe.model.entries import concat
from icefloe.model.metadata.properties import MERGE_ISOLATION, MERGE_MODE, UPSERT_DELETES
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.schema.schema import Schema
from icefloe.rows.prepared import Prepared, ReadSet
from icefloe.rows.removal import remove_rows
from icefloe.rows.target import Scratch, Target


def key_columns(on: Sequence[str] | None, schema: Schema) -> tuple[str, ...]:
    """The columns that tell rows apart: those that were given, or else the identifier fields of the schema."""
    keys = [schema.names[id_] for id_ in schema.identifier_field_ids] if on is None else on
    if isinstance(keys, str) or len(keys) == 0:
        raise InputError("upsert: give the key columns as a list, such as on=['id']")
    return tuple(keys)


class DeleteKind(StrEnum):
    """How an upsert deletes the rows that it replaces."""

    POSITION = "position"  # they are looked for, and deleted where they are
    EQUALITY = "equality"  # their keys are written down, and readers do the rest


def delete_kind(deletes: str | None, properties: Mapping[str, str]) -> DeleteKind:
    """The kind that was asked for, or else the one that the table asks for by ``write.upsert.deletes``."""
    text = UPSERT_DELETES.of(properties) if deletes is None else deletes
    known = {str(kind): kind for kind in DeleteKind}
    if text not in known:
        what = "upsert: deletes" if deletes is not None else f"property {UPSERT_DELETES.name}"
        raise InputError(f"{what}: expected {' or '.join(known)}, got {text!r}")
    return known[text]


def upsert(
    target: Target, rows: object, on: Sequence[str] | None, engine: Engine, *, deletes: str | None = None
) -> Prepared:
    """Replace rows by key and add new ones, as one snapshot; ``deletes`` is a ``DeleteKind`` by name."""
    keys = key_columns(on, target.metadata.schema)
    if delete_kind(deletes, target.properties) is DeleteKind.EQUALITY:
        return _by_value(target, rows, keys, engine)
    return _by_position(target, rows, keys, engine)


def _by_value(target: Target, rows: object, on: tuple[str, ...], engine: Engine) -> Prepared:
    """Without looking at the rows that are replaced; a new row has a new id."""
    io, metadata = target.io, target.metadata
    with engine.keyed(rows, metadata, on) as source, Scratch(io) as scratch:
        old = scratch.keep(engine.write_key_deletes(io, source, metadata))
        new = scratch.keep(engine.write(io, source.rows, metadata))
    if new.num_rows == 0:
        return Prepared(operation=Operation.OVERWRITE)
    specs = frozenset(spec.spec_id for spec in metadata.specs)
    update = ReplaceKeys(added=concat([new, old]), specs=specs, branch=target.branch)
    return Prepared(operation=Operation.OVERWRITE, update=update)


def _by_position(target: Target, rows: object, on: tuple[str, ...], engine: Engine) -> Prepared:
    """A row that replaces another goes on with its id."""
    io, metadata = target.io, target.metadata
    with engine.keyed(rows, metadata, on) as source, Scratch(io) as scratch:
        plan = target.plan(source.range)
        drops = plan.deleted_rows(io)
        matched = engine.find_keys(io, plan, drops, source, settled=target.settled)
        new = scratch.keep(engine.write(io, matched.rows, metadata, lineage=matched.lineage))
        if new.num_rows == 0:
            return Prepared(operation=Operation.OVERWRITE)
        changes = remove_rows(target, plan, drops, matched.positions, engine, MERGE_MODE)
    return ReadSet.of(target, plan.filter, MERGE_ISOLATION).prepared(changes.with_added(new))
