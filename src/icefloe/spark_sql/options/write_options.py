"""The options of a write, by the names that Apache Iceberg gives them.

Options go before the settings of the session, and these before the properties of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from icefloe.commit.conflicts import Isolation, isolation_of
from icefloe.errors import InputError, UnsupportedError
from icefloe.model.metadata.properties import (
    ACCEPT_ANY_SCHEMA,
    AVRO_COMPRESSION,
    AVRO_COMPRESSION_LEVEL,
    DELETE_FORMAT,
    DELETE_GRANULARITY,
    DELETE_ISOLATION,
    DELETE_TARGET_FILE_SIZE,
    DISTRIBUTION_MODE,
    FANOUT,
    FILE_FORMAT,
    ORC_COMPRESSION,
    ORC_STRATEGY,
    PARQUET_COMPRESSION,
    PARQUET_COMPRESSION_LEVEL,
    TARGET_FILE_SIZE,
    Property,
)
from icefloe.rows.target import ConflictsSince, WriteSettings
from icefloe.spark_sql.options.known_options import choice_option, lowered, number_option

Setting = Callable[[str], str | None]  # a setting of the session by its name

_BRANCH = "branch"
_MERGE_SCHEMA = ("mergeSchema", "merge-schema")
_SUMMARY_PREFIX = "snapshot-property."
_SPEC_ID, _ISOLATION, _SINCE, _OVERWRITE_MODE = (
    "output-spec-id",
    "isolation-level",
    "validate-from-snapshot-id",
    "overwrite-mode",
)
_CODEC, _LEVEL, _STRATEGY = "compression-codec", "compression-level", "compression-strategy"
_NULLABILITY, _ORDERING = "check-nullability", "check-ordering"
_SESSION_PREFIX = "spark.sql.iceberg."  # of settings that have the name of an option
_OF_SESSION = ("distribution-mode", _CODEC, _LEVEL, _STRATEGY)
_PROPERTIES: Mapping[str, Property[str] | Property[int]] = {
    "write-format": FILE_FORMAT,
    "target-file-size-bytes": TARGET_FILE_SIZE,
    "distribution-mode": DISTRIBUTION_MODE,
    "fanout-enabled": FANOUT,
    "delete-format": DELETE_FORMAT,
    "target-delete-file-size-bytes": DELETE_TARGET_FILE_SIZE,
    "delete-granularity": DELETE_GRANULARITY,
}
_COMPRESSION: Mapping[str, Mapping[str, Property[str]]] = {
    "parquet": {_CODEC: PARQUET_COMPRESSION, _LEVEL: PARQUET_COMPRESSION_LEVEL},
    "avro": {_CODEC: AVRO_COMPRESSION, _LEVEL: AVRO_COMPRESSION_LEVEL},
    "orc": {_CODEC: ORC_COMPRESSION, _STRATEGY: ORC_STRATEGY},
}
_KNOWN = (
    *(_BRANCH, *_MERGE_SCHEMA, _SUMMARY_PREFIX, _SPEC_ID, _ISOLATION, _SINCE, _OVERWRITE_MODE),
    *(_CODEC, _LEVEL, _STRATEGY, _NULLABILITY, _ORDERING),
    *_PROPERTIES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What the options of a write and the settings of the session ask for, in words of icefloe."""

    given: Mapping[str, str]  # the options by their names in lower case
    settings: WriteSettings
    branch: str | None
    merges_schema: bool
    is_dynamic: bool  # whether an overwrite of all rows overwrites the partitions of the new rows only

    @property
    def is_plain(self) -> bool:
        """Whether the write does nothing else than the table says."""
        return self.settings == WriteSettings() and not self.merges_schema


def write_options(
    options: Mapping[str, str],
    properties: Mapping[str, str],
    setting: Setting,
    *,
    specs: tuple[int, ...] = (),
    read: int | None = None,
    overwrites: bool = False,
    more: tuple[str, ...] = (),
) -> WriteOptions:
    """The options of a write to a table with these properties and partition specs.

    InputError names an option that is not known, or has no effect on this write. ``read`` is the snapshot that the
    statement started from; ``more`` are further options that the write knows.

    >>> write_options({"write-format": "avro"}, {}, lambda name: None).settings.properties
    {'write.format.default': 'avro'}
    """
    given = lowered(options, (*_KNOWN, *more), "a write")
    _check_checks(given, properties)
    for name in (_ISOLATION, _SINCE, _OVERWRITE_MODE):
        if name in given and not overwrites:
            raise InputError(f"option {name}: only overwrites have it; this write replaces no rows", option=name)
    asked = {name: setting(_SESSION_PREFIX + name) for name in _OF_SESSION}
    stated = {**{name: value for name, value in asked.items() if value is not None}, **given}
    return WriteOptions(
        given=given,
        settings=WriteSettings(
            properties=_properties(stated, given, properties),
            spec_id=_spec_id(given, specs),
            summary=summary_properties(options),
            conflicts=_conflicts(given, properties, read),
        ),
        branch=given.get(_BRANCH),
        merges_schema=_merges_schema(given, setting),
        is_dynamic=choice_option(given, _OVERWRITE_MODE, ("static", "dynamic")) == "dynamic",
    )


def summary_properties(options: Mapping[str, str]) -> dict[str, str]:
    """What options such as ``snapshot-property.team`` add to the summary of the snapshot; the key keeps its case.

    >>> summary_properties({"snapshot-property.Team": "sales", "Snapshot-Property.run": "7", "branch": "audit"})
    {'Team': 'sales', 'run': '7'}
    """
    return {
        name[len(_SUMMARY_PREFIX) :]: value
        for name, value in options.items()
        if name.lower().startswith(_SUMMARY_PREFIX) and len(name) > len(_SUMMARY_PREFIX)
    }


def _properties(stated: Mapping[str, str], given: Mapping[str, str], of_table: Mapping[str, str]) -> dict[str, str]:
    """The properties of the table that a write has by its options, and by the settings of the session."""
    properties: dict[str, str] = {}
    for name, property_ in _PROPERTIES.items():
        if name in stated:
            properties[property_.name] = _checked(name, stated[name], property_)
    file_format = FILE_FORMAT.of({**of_table, **properties}).lower()
    for name in (_CODEC, _LEVEL, _STRATEGY):
        compression = _COMPRESSION[file_format].get(name)
        if compression is not None and name in stated:
            properties[compression.name] = _checked(name, stated[name], compression)
        elif name in given:
            raise InputError(f"option {name}: {file_format} files have none; leave it out", option=name)
    return properties


def _checked(name: str, text: str, property_: Property[str] | Property[int]) -> str:
    problem = property_.problem(text)
    if problem is not None:
        raise InputError(f"option {name}: {problem}", option=name)
    return text


def _spec_id(given: Mapping[str, str], specs: tuple[int, ...]) -> int | None:
    """The partition spec of the new files."""
    text, known = given.get(_SPEC_ID), {str(spec_id): spec_id for spec_id in specs}
    if text is not None and text not in known:
        there = f"the specs {', '.join(known)}" if len(known) > 0 else "no specs before this write"
        raise InputError(f"option {_SPEC_ID}={text}: the table has {there}", option=_SPEC_ID)
    return None if text is None else known[text]


def _conflicts(given: Mapping[str, str], properties: Mapping[str, str], read: int | None) -> ConflictsSince | None:
    """The conflicts that an overwrite looks for; without an isolation level that of deletes in the table."""
    level, since = choice_option(given, _ISOLATION, tuple(Isolation)), number_option(given, _SINCE)
    if level is None and since is None:
        return None
    isolation = isolation_of(DELETE_ISOLATION, properties) if level is None else Isolation(level)
    return ConflictsSince(snapshot_id=read if since is None else since, isolation=isolation)


def _merges_schema(given: Mapping[str, str], setting: Setting) -> bool:
    """Whether a write first adds the columns that the table lacks."""
    values = {choice_option(given, name.lower(), ("true", "false")) for name in _MERGE_SCHEMA} - {None}
    if len(values) > 1:
        raise InputError(f"the options {' and '.join(_MERGE_SCHEMA)} contradict each other; give one of them")
    asked = values.pop() if len(values) > 0 else setting(f"{_SESSION_PREFIX}merge-schema")
    return asked is not None and asked.lower() == "true"


def _check_checks(given: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """UnsupportedError for checks that writes always do, or never.

    Spark puts columns into the order of the table, unless the table accepts rows with any columns.
    """
    if choice_option(given, _NULLABILITY, ("true", "false")) == "false":
        raise UnsupportedError(f"option {_NULLABILITY}=false: required columns never get nulls; leave the option out")
    if choice_option(given, _ORDERING, ("true", "false")) == "true" and ACCEPT_ANY_SCHEMA.of(properties):
        raise UnsupportedError(
            f"option {_ORDERING}=true: the table has {ACCEPT_ANY_SCHEMA.name}=true, and columns are found by name, in"
            " whatever order; leave the option out"
        )
