"""Partition evolution: steps applied to a spec give another spec, or an error (spec: Partition Evolution).

``PartitionUpdate`` makes the steps from text such as ``month(ts)``; ``evolve_spec`` applies them in order, and together
they make one new spec. Partition fields that no step touches keep their ids and positions.
``icefloe.model.partition.spec_history`` makes the result the default spec of a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from icefloe.errors import InputError
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION, VersionRules, rules
from icefloe.model.partition.spec import (
    PartitionField,
    PartitionSpec,
    added_name,
    name_problem,
    redundancy_problem,
    source_problem,
)
from icefloe.model.partition.spec_history import add_spec
from icefloe.model.partition.transform_names import VOID
from icefloe.model.schema.schema import Schema
from icefloe.model.text.partition_text import parse_partition


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionField:
    """Partition by one more value; without a ``name`` it gets back the one it had, or Iceberg's default."""

    transform: str
    columns: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePartitionField:
    """No longer partition by a field."""

    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePartitionValue:
    """No longer partition by a transform of some columns; the name of its field does not matter."""

    transform: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePartitionField:
    """Another name for a field; its id stays."""

    field: str
    name: str


PartitionChange: TypeAlias = AddPartitionField | RemovePartitionField | RemovePartitionValue | RenamePartitionField


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolvedSpec:
    """The result: a spec that still has the id of the old one, and the highest partition field id ever used."""

    spec: PartitionSpec
    last_partition_id: int


def evolve_spec(
    spec: PartitionSpec,
    steps: Iterable[PartitionChange],
    *,
    schema: Schema,
    specs: Iterable[PartitionSpec] = (),
    last_partition_id: int,
    format_version: int = DEFAULT_FORMAT_VERSION,
) -> EvolvedSpec:
    """The spec after the steps; InputError, with field and reason, for a step that the format does not allow.

    Version 1 does not track field ids, so a field always keeps its position: a removed field becomes void, and its name
    can be used by another field. Later versions drop it. There a new field reuses the id of a field with the same
    columns and transform in any of ``specs``, because manifests identify partition values by id. Every other new field
    gets the next unused id. ``icefloe.transforms`` checks whether a transform accepts the type of its column.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> from icefloe.model.text.partition_text import partition_spec
    >>> schema = parse_ddl("id bigint, ts timestamp")
    >>> steps = [RemovePartitionField(field="ts_day"), AddPartitionField(transform="hour", columns=("ts",))]
    >>> before = partition_spec(["day(ts)", "id"], schema)
    >>> [(f.field_id, f.name) for f in evolve_spec(before, steps, schema=schema, last_partition_id=1001).spec.fields]
    [(1001, 'id'), (1002, 'ts_hour')]
    """
    highest = max((field.stored_id for other in (spec, *specs) for field in other.fields), default=last_partition_id)
    if highest > last_partition_id:
        raise InputError(f"last partition id {last_partition_id} is below id {highest} of a partition field")
    work = _Evolution(spec, schema, tuple(specs), last_partition_id, rules(format_version))
    for step in steps:
        work.apply(step)
    evolved = replace(spec, fields=work.build())
    problem = redundancy_problem(evolved, spec)
    if problem is not None:
        raise InputError(problem, spec_id=spec.spec_id)
    return EvolvedSpec(spec=evolved, last_partition_id=work.last_partition_id)


class _Evolution:
    """The fields while steps change them; removed ones keep their position, so that they can be restored."""

    def __init__(
        self,
        spec: PartitionSpec,
        schema: Schema,
        specs: tuple[PartitionSpec, ...],
        last_partition_id: int,
        version: VersionRules,
    ) -> None:
        self.fields = {field.field_id: field for field in spec.fields}
        self.removed: set[int] = set()
        self.history = tuple(field for other in (spec, *reversed(specs)) for field in other.fields)
        self.before = frozenset(self.fields)
        self.schema = schema
        self.last_partition_id = last_partition_id
        self.version = version
        if len(self.fields) < len(spec.fields):
            raise InputError(f"partition spec {spec.spec_id} has two fields of one id", spec_id=spec.spec_id)

    def apply(self, step: PartitionChange) -> None:
        match step:
            case AddPartitionField():
                self._add(step)
            case RemovePartitionField():
                self._remove(self._find(step.field))
            case RemovePartitionValue():
                self._remove(self._find_value(step))
            case RenamePartitionField():
                self._place(replace(self._find(step.field), name=step.name))

    def _live(self) -> Iterator[PartitionField]:
        """The fields that have values; void ones only keep their position."""
        return (f for f in self.fields.values() if f.field_id not in self.removed and not f.is_void)

    def _find(self, name: str) -> PartitionField:
        for field in self.fields.values():
            if field.name == name and field.field_id not in self.removed:
                return field
        raise self._absent(f"no partition field {name!r}")

    def _find_value(self, step: RemovePartitionValue) -> PartitionField:
        wanted = (tuple(self.schema.field(column).id for column in step.columns), step.transform)
        for field in self._live():
            if field.derivation == wanted:
                return field
        raise self._absent(f"no partition field of {step.transform} of {', '.join(step.columns)}")

    def _absent(self, what: str) -> InputError:
        there = [f"{field.name} ({field.transform})" for field in self._live()]
        known = f"the fields are: {', '.join(there)}" if len(there) > 0 else "the table is not partitioned"
        return InputError(f"{what}; {known}")

    def _add(self, step: AddPartitionField) -> None:
        if len(step.columns) == 0:
            raise InputError(f"partition by {step.transform}: name the column", transform=step.transform)
        if len(step.columns) > 1 and not self.version.source_ids:
            raise InputError(
                f"partition by {step.transform} of {', '.join(step.columns)}: transforms of several columns need"
                " format version 3",
                transform=step.transform,
            )
        source, *others = (self.schema.field(column).id for column in step.columns)
        wanted = PartitionField(
            source_id=source,
            other_source_ids=tuple(others),
            field_id=self.last_partition_id + 1,
            name=added_name(step.transform, *step.columns) if step.name is None else step.name,
            transform=step.transform,
        )
        former = self._former(wanted)
        if former is not None:
            wanted = replace(former, name=former.name if step.name is None else step.name)
        self._place(wanted)
        self.last_partition_id = max(self.last_partition_id, wanted.field_id)

    def _former(self, wanted: PartitionField) -> PartitionField | None:
        """The same field from the steps of this change, or, in versions that track ids, from an older spec."""
        for field in self.history:
            if wanted.is_void or field.derivation != wanted.derivation:
                continue
            taken = self.fields.get(field.field_id)
            if taken is not None and field.field_id in self.removed and taken.derivation == wanted.derivation:
                return taken
            if taken is None and self.version.partition_ids and not self._is_stored(field.stored_id):
                return field
        return None

    def _is_stored(self, id_: int) -> bool:
        """Whether a field has this id in files; its own id may differ."""
        return any(field.stored_id == id_ for field in self.fields.values())

    def _place(self, field: PartitionField) -> None:
        """Insert a field at the position of its id, or at the end, after checking it."""
        others = [other for other in self._live() if other.field_id != field.field_id]
        is_new = field.field_id not in self.fields or field.field_id in self.removed
        problem = source_problem(field, self.schema) if is_new else None
        problem = name_problem(field, others, self.schema) if problem is None else problem
        if problem is not None:
            raise InputError(f"partition field {field.name!r}: {problem}", field=field.name)
        self.fields[field.field_id] = field
        self.removed.discard(field.field_id)

    def _remove(self, field: PartitionField) -> None:
        if field.is_void and not self.version.partition_ids:
            reason = "was removed before; version 1 keeps its position"
            raise InputError(f"partition field {field.name!r} {reason}", field=field.name)
        if field.field_id in self.before:
            self.removed.add(field.field_id)
        else:
            del self.fields[field.field_id]

    def build(self) -> tuple[PartitionField, ...]:
        """The fields after all steps; removed ones are dropped, or void in versions that keep positions."""
        if self.version.partition_ids:
            kept = [field for field in self.fields.values() if field.field_id not in self.removed]
        else:
            kept = [replace(f, transform=VOID) if f.field_id in self.removed else f for f in self.fields.values()]
        names = {field.name for field in self._live()}
        built: list[PartitionField] = []
        for field in kept:
            if field.is_void:
                field = replace(field, name=_unused(field, names))
                names.add(field.name)
            built.append(field)
        return tuple(built)


def _unused(field: PartitionField, names: set[str]) -> str:
    """A void field's own name if nothing else has it, else one made from its id."""
    name = field.name
    while name in names:
        name = f"{name}_{field.stored_id}"
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionUpdate:
    """Changes of the default partition spec of a table; each call returns a new value with one more step.

    >>> from icefloe.model.text.ddl import parse_ddl
    >>> from icefloe.model.text.partition_text import partition_spec
    >>> schema = parse_ddl("id bigint, ts timestamp")
    >>> table = TableMetadata(format_version=2, table_uuid="u", location="file:///t", last_updated_ms=0,
    ...     last_column_id=2, schemas=(schema,), specs=(partition_spec(["day(ts)"], schema),), last_partition_id=1000)
    >>> changed = PartitionUpdate(metadata=table).add("month(ts)", name="m").remove("day(ts)").apply()
    >>> changed.spec.spec_id, [(field.field_id, field.name) for field in changed.spec.fields]
    (1, [(1001, 'm')])
    """

    metadata: TableMetadata
    steps: tuple[PartitionChange, ...] = ()

    def add(self, text: str, name: str | None = None) -> PartitionUpdate:
        """Partition by one more value, such as ``day(ts)``, ``bucket(16, id)``, ``bucket(16, a, b)`` or a column."""
        transform, sources = parse_partition(text, self.metadata.schema)
        return self._then(AddPartitionField(transform=transform, columns=sources, name=name))

    def remove(self, field: str) -> PartitionUpdate:
        """Remove a partition field, identified by its name or by its transform and column, such as ``day(ts)``."""
        if "(" not in field or self.metadata.spec.field(field) is not None:
            return self._then(RemovePartitionField(field=field))
        transform, sources = parse_partition(field, self.metadata.schema)
        return self._then(RemovePartitionValue(transform=transform, columns=sources))

    def rename(self, field: str, name: str) -> PartitionUpdate:
        """Another name for a field."""
        return self._then(RenamePartitionField(field=field, name=name))

    def evolved(self) -> EvolvedSpec:
        """The spec after the steps."""
        table = self.metadata
        return evolve_spec(
            table.spec,
            self.steps,
            schema=table.schema,
            specs=table.specs,
            last_partition_id=table.last_partition_id,
            format_version=table.format_version,
        )

    def apply(self) -> TableMetadata:
        """The table with the spec after the steps as its default one."""
        return add_spec(self.metadata, self.evolved().spec)

    def _then(self, step: PartitionChange) -> PartitionUpdate:
        return replace(self, steps=(*self.steps, step))
