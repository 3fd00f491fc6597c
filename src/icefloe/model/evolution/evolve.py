"""Schema evolution: steps applied to a schema give another schema, or an error (spec: Schema Evolution).

Steps are applied in order, like a series of ALTER TABLE statements: each step sees the names that earlier steps left.
Together they make one new schema. Fields that no step touches are unchanged; new fields get ids that were never used.
``icefloe.model.evolution.schema_history`` makes the result the current schema of a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from icefloe.errors import InputError
from icefloe.limits import DEFAULT
from icefloe.model.evolution.change_rules import identifier_problem, promotion_problem, reserved_name_problem
from icefloe.model.evolution.protected_columns import NOTHING_PROTECTED, Protected
from icefloe.model.evolution.schema_draft import TABLE, Draft
from icefloe.model.evolution.steps import (
    AddColumn,
    Before,
    DropColumn,
    First,
    MakeOptional,
    MoveColumn,
    Position,
    PromoteColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetIdentifiers,
)
from icefloe.model.metadata.version_rules import DEFAULT_FORMAT_VERSION, VersionRules, rules
from icefloe.model.partition.transform_names import IDENTITY, VOID
from icefloe.model.schema.defaults import default_json, promoted_default, without_default
from icefloe.model.schema.metadata_columns import MAX_COLUMN_ID
from icefloe.model.schema.schema import Schema, fresh_ids
from icefloe.model.schema.types import UNKNOWN, Field, List, Map, Struct, children, since, walk, with_children
from icefloe.model.text.text_checks import check_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolved:
    """The result: a schema that still has the id of the old one, and the highest column id ever used."""

    schema: Schema
    last_column_id: int


def evolve(
    schema: Schema,
    steps: Iterable[SchemaChange],
    *,
    last_column_id: int,
    protected: Protected = NOTHING_PROTECTED,
    format_version: int = DEFAULT_FORMAT_VERSION,
) -> Evolved:
    """The schema after the steps; InputError, with column and reason, for a step that the format does not allow.

    Names are case-sensitive, yet a name that differs from another one only in case is refused when it is added or
    renamed, because engines that ignore case (Spark, by default) could read neither column. Schemas that have such
    names already can still change otherwise. The steps may not both change and drop one column. One rule is not from
    the spec but from Parquet: a struct has at least one field.

    >>> from icefloe.model.evolution.steps import After
    >>> from icefloe.model.schema.types import INT, LONG, STRING
    >>> before = Schema(fields=(Field(1, "id", INT), Field(2, "note", STRING)))
    >>> steps = [PromoteColumn(column="id", type=LONG), AddColumn(name="at", type=LONG, position=After("id"))]
    >>> [(f.id, f.name, str(f.type)) for f in evolve(before, steps, last_column_id=2).schema.fields]
    [(1, 'id', 'long'), (3, 'at', 'long'), (2, 'note', 'string')]
    """
    if last_column_id < schema.highest_id:
        raise InputError(
            f"last column id {last_column_id} is below id {schema.highest_id} of column"
            f" {schema.names[schema.highest_id]!r}: ids would be used twice",
            field=schema.names[schema.highest_id],
        )
    work = _Evolution(schema, last_column_id, protected, format_version)
    for step in steps:
        work.apply(step)
    work.check_fields_left()
    work.check_partition_names(schema)
    evolved = replace(schema, fields=work.draft.build(), identifier_field_ids=work.identifiers)
    return Evolved(schema=evolved, last_column_id=work.last_column_id)


_TEXTS = dict.fromkeys(("column", "parent", "name"), "name of a column") | {"doc": "comment of a column"}


class _Evolution:
    """The state between two steps."""

    def __init__(self, schema: Schema, last_column_id: int, protected: Protected, format_version: int) -> None:
        self.draft = Draft(schema)
        self.last_column_id = last_column_id
        self.identifiers = schema.identifier_field_ids
        self._protected = protected
        self._rules = rules(format_version)
        self._touched: set[int] = set()
        self._dropped: set[str] = set()
        self._shrunk: dict[int | None, str] = {}  # structs with dropped fields -> the field dropped last

    def apply(self, step: SchemaChange) -> None:
        for key, what in _TEXTS.items():
            if (text := getattr(step, key, None)) is not None:
                check_text(text, what)
        match step:
            case AddColumn():
                self._add(step)
            case DropColumn():
                self._drop(step.column)
            case RenameColumn():
                self._rename(step.column, step.name)
            case MoveColumn():
                self._move(step.column, step.position)
            case PromoteColumn():
                self._promote(step)
            case MakeOptional():
                self._make_optional(step.column)
            case SetDoc():
                field_id = self._changeable(step.column, "given a comment", of_struct=True)
                self.draft.change(replace(self.draft.field(field_id), doc=step.doc))
            case SetDefault():
                self._set_default(step)
            case SetIdentifiers():
                self._set_identifiers(step.columns)
            case _:
                raise InputError(f"not a step of schema evolution: {step!r}")

    def _add(self, step: AddColumn) -> None:
        owner = self._struct(step)
        name = step.name if owner is TABLE else f"{self.draft.name(owner)}.{step.name}"
        self._check_name(owner, step.name, name, "added")
        column = Field(0, step.name, step.type, step.required, step.doc, step.default, step.default)
        depth = 0 if owner is TABLE else self._depth(owner) + 1
        checked = checked_column(column, name, self._rules, depth=depth)
        if checked.required and checked.initial_default is None:
            remedy = "give a default"
            if not self._rules.column_defaults:
                remedy = "defaults need format version 3 or later; add it as optional"
            raise refused(name, "added", f"rows already written have no value for a required column; {remedy}")
        field = self._numbered(checked, self.last_column_id + 1, name, "added")
        self.draft.add(owner, field)
        if step.position is not None:
            self._place(field.id, name, step.position)
        self._touched.update(self.draft.subtree(field.id))

    def _numbered(self, field: Field, start: int, name: str, verb: str) -> Field:
        """The field with ids from ``start`` on, which are used up from now on."""
        (fresh,) = fresh_ids((field,), start)
        highest = max(inner.id for _, inner in walk((fresh,)))
        if highest > MAX_COLUMN_ID:
            raise refused(name, verb, f"column ids end at {MAX_COLUMN_ID}")
        self.last_column_id = highest
        return fresh

    def _check_name(self, owner: int | None, name: str, full_name: str, verb: str) -> None:
        problem = reserved_name_problem(name) if owner is TABLE else None
        if problem is not None:
            raise refused(full_name, verb, problem)

    def _struct(self, step: AddColumn) -> int | None:
        if step.parent is None:
            return TABLE
        owner = self._find(step.parent)
        type_ = self.draft.field(owner).type
        if isinstance(type_, (List, Map)):
            owner = self.draft.inside(owner)[-1]  # the element of a list, the value of a map
            type_ = self.draft.field(owner).type
        if not isinstance(type_, Struct):
            raise refused(f"{step.parent}.{step.name}", "added", f"{step.parent!r} holds {type_}, not a struct")
        self._not_in_key(owner, f"{self.draft.name(owner)}.{step.name}", "added")
        return owner

    def _drop(self, name: str) -> None:
        field_id = self._find(name)
        self._of_struct(field_id, name, "dropped")
        self._not_in_key(field_id, name, "dropped")
        for inner in self.draft.subtree(field_id):
            what = "it" if inner == field_id else f"{self.draft.name(inner)!r} inside it"
            if inner in self._touched:
                raise refused(name, "dropped", f"another step of this change adds or changes {what}")
            if inner in self.identifiers:
                raise refused(name, "dropped", f"{what} identifies rows; set other identifier columns first")
            user = self._protected.drop_problem(inner)
            if user is not None:
                raise refused(name, "dropped", user if inner == field_id else f"{what} is in use: {user}")
        self._shrunk[self.draft.owner(field_id)] = name
        self._dropped.update(self.draft.name(inner) for inner in self.draft.subtree(field_id))
        self.draft.drop(field_id)

    def _rename(self, name: str, new_name: str) -> None:
        field_id = self._changeable(name, "renamed", of_struct=True)
        if new_name == "":
            raise refused(name, "renamed", "its new name is empty")
        self._check_name(self.draft.owner(field_id), new_name, name, f"renamed to {new_name!r}")
        self.draft.rename(field_id, new_name)

    def _move(self, name: str, position: Position) -> None:
        field_id = self._changeable(name, "moved", of_struct=True)
        self._place(field_id, name, position)

    def _place(self, field_id: int, name: str, position: Position) -> None:
        if isinstance(position, First):
            self.draft.place(field_id, None)
            return
        neighbour = self._find(position.column)
        if neighbour == field_id:
            raise refused(name, "moved", "its new position is relative to itself")
        if self.draft.owner(neighbour) != self.draft.owner(field_id):
            raise refused(name, "moved", f"{position.column!r} is in another struct, and columns stay in theirs")
        self.draft.place(field_id, neighbour, 0 if isinstance(position, Before) else 1)

    def _promote(self, step: PromoteColumn) -> None:
        field_id = self._changeable(step.column, "promoted")
        field, verb = self.draft.field(field_id), f"changed to {step.type}"
        if field.type == step.type:
            return
        problem = promotion_problem(field.type, step.type, self._rules.version)
        if problem is None:
            problem = self._protected.promotion_problem(field_id, field.type, step.type)
        if problem is not None:
            raise refused(step.column, verb, problem)
        try:
            initial, write = (
                promoted_default(default, field.type, step.type)
                for default in (field.initial_default, field.write_default)
            )
        except InputError as error:
            raise refused(step.column, verb, f"its default does not fit: {error}") from error
        column = Field(0, field.name, step.type)
        checked = checked_column(column, step.column, self._rules, depth=self._depth(field_id), verb=verb)
        # The field keeps its id. Only the fields inside need new ids, so the number for the field itself is not used.
        fresh = self._numbered(checked, self.last_column_id, step.column, verb)
        self.draft.retype(replace(field, type=fresh.type, initial_default=initial, write_default=write))
        self._touched.update(self.draft.subtree(field_id))

    def _depth(self, field_id: int) -> int:
        return sum(1 for _ in self.draft.owners(field_id)) - 1

    def _set_default(self, step: SetDefault) -> None:
        field_id = self._changeable(step.column, "given a default", of_struct=True)
        field = self.draft.field(field_id)
        if step.default is not None and not self._rules.column_defaults:
            reason = f"defaults need format version 3 or later, this is {self._rules.version}"
            raise refused(step.column, "given a default", reason)
        if step.default is None and field.required and field.write_default is not None:
            reason = "it is required; set another one, or make the column optional first"
            raise refused(step.column, "without a default", reason)
        try:
            default = default_json(step.default, field.type)
        except InputError as error:
            raise refused(step.column, "given a default", f"the default does not fit: {error}") from error
        inner = (self.draft.field(child) for child in self.draft.inside(field_id))
        lacking = without_default(default, inner, "write")
        if lacking is not None:
            reason = f"{step.column}.{lacking} is required and has no default"
            raise refused(step.column, "given a default", reason)
        self.draft.change(replace(field, write_default=default))

    def _make_optional(self, name: str) -> None:
        field_id = self._changeable(name, "made optional")
        identifiers = [i for i in self.draft.subtree(field_id) if i in self.identifiers]
        if len(identifiers) > 0:
            what = "it" if identifiers[0] == field_id else f"{self.draft.name(identifiers[0])!r} inside it"
            raise refused(name, "made optional", f"{what} identifies rows; set other identifier columns first")
        self.draft.change(replace(self.draft.field(field_id), required=False))

    def _set_identifiers(self, names: tuple[str, ...]) -> None:
        chosen = [self._find(name) for name in names]
        for name, field_id in zip(names, chosen, strict=True):
            field, *around = (self.draft.field(i) for i in self.draft.owners(field_id))
            owners = tuple((owner.name, owner.type, owner.required) for owner in around)
            problem = identifier_problem(field.type, required=field.required, owners=owners)
            if problem is not None:
                raise refused(name, "an identifier", problem)
        self.identifiers = tuple(sorted(set(chosen)))

    def check_fields_left(self) -> None:
        """Refuse a struct or a table without fields: Parquet cannot store one."""
        for owner, name in self._shrunk.items():
            if (owner is TABLE or self.draft.has(owner)) and len(self.draft.inside(owner)) == 0:
                what = "the table" if owner is TABLE else repr(self.draft.name(owner))
                raise refused(name, "dropped", f"{what} would have no fields left, and Parquet cannot store that")

    def check_partition_names(self, before: Schema) -> None:
        """Refuse a column with the name of a partition field that is derived from other columns of the table.

        A partition field whose columns were all dropped does not matter: only old files have its values.
        """
        for spec, part in self._protected.parts:
            column = self.draft.find(part.name)
            former = before.by_name.get(part.name)
            kept = former is not None and former.id == column
            same = part.source_id == column and part.transform in (IDENTITY, VOID)
            is_gone = not any(self.draft.has(source_id) for source_id in part.source_ids)
            if column is not None and not kept and not same and not is_gone:
                reason = f"partition field {part.name!r} of spec {spec.spec_id} ({part.transform}) has that name"
                raise refused(part.name, "named so", f"{reason}; choose another one")

    def _find(self, name: str) -> int:
        field_id = self.draft.find(name)
        if field_id is not None:
            return field_id
        if name in self._dropped:
            raise refused(name, "used", "an earlier step of this change drops it")
        raise InputError(f"no column {name!r}; the table has: {', '.join(self.draft.names())}", field=name)

    def _changeable(self, name: str, verb: str, *, of_struct: bool = False) -> int:
        field_id = self._find(name)
        if of_struct:
            self._of_struct(field_id, name, verb)
        self._not_in_key(field_id, name, verb)
        self._touched.add(field_id)
        return field_id

    def _of_struct(self, field_id: int, name: str, verb: str) -> None:
        owner = self.draft.owner(field_id)
        if owner is not TABLE and not isinstance(self.draft.field(owner).type, Struct):
            slot = self.draft.field(field_id).name
            raise refused(name, verb, f"it is the {slot} of {self.draft.name(owner)!r}, not a field of a struct")

    def _not_in_key(self, field_id: int, name: str, verb: str) -> None:
        for inner in self.draft.owners(field_id):
            owner = self.draft.owner(inner)
            if owner is None or not isinstance(self.draft.field(owner).type, Map):
                continue
            if self.draft.inside(owner)[0] == inner:
                raise refused(name, verb, f"the keys of map {self.draft.name(owner)!r} cannot change")


def checked_column(field: Field, name: str, rules: VersionRules, *, depth: int = 0, verb: str = "added") -> Field:
    """The field with all defaults in their JSON form; an error if tables of the format version cannot hold it.

    ``name`` is the field's full name, ``depth`` the number of fields around it. Ids are not changed: the caller assigns
    them.
    """
    return _Check(rules, verb).field(field, name, depth)


def refused(name: str, verb: str, reason: str) -> InputError:
    """The error of a change that the format does not allow."""
    return InputError(f"column {name!r} cannot be {verb}: {reason}", field=name)


class _Check:
    def __init__(self, rules: VersionRules, verb: str) -> None:
        self._rules = rules
        self._verb = verb

    def field(self, field: Field, name: str, depth: int) -> Field:
        if depth > DEFAULT.type_depth:
            raise self._refused(name, f"types are nested deeper than {DEFAULT.type_depth}")
        if field.name == "":
            raise self._refused(name, "its name is empty")
        inner = tuple(self.field(child, f"{name}.{child.name}", depth + 1) for child in children(field.type))
        if isinstance(field.type, Struct) and len(inner) == 0:
            raise self._refused(name, f"struct {name!r} has no fields, and Parquet cannot store it")
        version, first = self._rules.version, since(field.type)
        if first > version:  # of a nested type: the fields inside were checked before
            raise self._refused(name, f"type {field.type} needs format version {first} or later, this is {version}")
        if field.type == UNKNOWN and field.required:
            raise self._refused(name, "all values of an unknown column are null, so it must be optional")
        checked = replace(
            field,
            type=with_children(field.type, inner),
            initial_default=self.default(field, name, field.initial_default),
            write_default=self.default(field, name, field.write_default),
        )
        lacking = without_default(checked.initial_default, inner, "initial")
        lacking = without_default(checked.write_default, inner, "write") if lacking is None else lacking
        if lacking is not None:
            raise self._refused(name, f"its default is {{}}, but {name}.{lacking} is required and has no default")
        return checked

    def default(self, field: Field, name: str, default: object) -> object:
        if default is None:
            return None
        if not self._rules.column_defaults:
            reason = f"defaults need format version 3 or later, this is {self._rules.version}"
            raise self._refused(name, reason)
        try:
            return default_json(default, field.type)
        except InputError as error:
            raise self._refused(name, f"its default does not fit: {error}") from error

    def _refused(self, name: str, reason: str) -> InputError:
        return refused(name, self._verb, reason)
