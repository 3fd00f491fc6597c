"""What a new column may be, at every depth of its type (spec: Schema Evolution, Default values)."""

from __future__ import annotations

from dataclasses import replace

from icefloe.errors import InputError
from icefloe.limits import DEFAULT
from icefloe.model.metadata.version_rules import VersionRules
from icefloe.model.schema.defaults import default_json, without_default
from icefloe.model.schema.types import UNKNOWN, Field, Struct, children, since, with_children


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
        if first > version:  # a nested type is as new as what is inside it, and that was asked first
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
