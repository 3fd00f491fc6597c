"""The page on the format of version 4 agrees with the code: field ids, rules of entries, measures of types, keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa

from docs.test_code_blocks import REPO
from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.codecs.manifest.content_stats import measures_of
from icefloe.codecs.manifest.field_ids import (
    CONTENT_ENTRY,
    CORNER_OFFSETS,
    MEASURE_OFFSETS,
    STATS_BASE,
    STATS_FIELD_LIMIT,
    STATS_STRIDE,
    Group,
    Slot,
)
from icefloe.model.corners import AXES
from icefloe.model.entries import ENTRY, MANIFEST_COUNTS, Measure
from icefloe.model.metadata.properties import MANIFEST_DV_INLINE_MAX_BYTES, ROOT_MAX_DATA_FILES
from icefloe.model.metadata.version_rules import METADATA_FIELDS, fields
from icefloe.model.schema.types import NAMED, UNKNOWN, VARIANT, Decimal, Fixed, Geography, Geometry, Type
from support.metadata_documents import metadata_json
from support.tables import new_catalog
from unit.codecs.test_entry_checks import MATRIX

PAGE = (REPO / "docs" / "format-v4.md").read_text(encoding="utf-8")
ARROW_NAMES = {pa.int32(): "int", pa.int64(): "long", pa.string(): "string", pa.binary(): "binary"}


def section(title: str) -> str:
    """The text of a section of the page."""
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def tables(title: str) -> list[list[list[str]]]:
    """The tables of a section: rows of cells, without the headings."""
    found: list[list[list[str]]] = []
    for block in re.findall(r"(?:^\|.*\|\n)+", section(title), re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        found.append(rows[2:])
    return found


def test_the_table_of_the_content_entry_has_every_field_with_its_id_and_type() -> None:
    expected = []
    for item in CONTENT_ENTRY:
        if isinstance(item, Group):
            expected.append((str(item.id), item.name, "struct"))
            continue
        type_ = ENTRY.field(item.entry).type
        if pa.types.is_list(type_):
            expected.append((str(item.id), item.name, f"list of {ARROW_NAMES[type_.value_type]} ({item.element_id})"))
        else:
            expected.append((str(item.id), item.name, ARROW_NAMES[type_]))
    rows = tables("The content entry")[0]
    assert [tuple(row[:3]) for row in rows] == expected


def test_the_members_of_groups_are_listed_with_their_ids() -> None:
    notes = {row[1]: row[3] for row in tables("The content entry")[0]}
    for item in CONTENT_ENTRY:
        if isinstance(item, Group) and len(item.slots) > 0:
            listed = re.findall(r"(\d+) (\w+)", notes[item.name])
            assert listed == [(str(slot.id), slot.name) for slot in item.slots]


def test_required_fields_are_marked() -> None:
    notes = {row[1]: row[3] for row in tables("The content entry")[0]}
    for item in CONTENT_ENTRY:
        if isinstance(item, Slot):
            assert notes[item.name].startswith("required") == item.required, item.name


ENTRY_COLUMNS = {
    "deletion_vector.offset": "dv_offset",
    "deletion_vector.size_in_bytes": "dv_size_in_bytes",
    "deletion_vector.inline_content": "dv_inline_content",
}


def test_the_matrix_of_fields_by_content_type_is_the_one_that_the_reader_is_tested_with() -> None:
    expected = {name: line.split() for name, line in MATRIX.items()}
    listed = {ENTRY_COLUMNS.get(name, name): rules for name, *rules in tables("The content entry")[1]}
    counts = listed.pop("manifest_stats")
    assert listed | {field.name: counts for field in MANIFEST_COUNTS} == expected


def test_the_offsets_of_statistics_are_those_of_the_code() -> None:
    offsets, _ = tables("Statistics")
    listed = {row[1]: row[0] for row in offsets}
    for measure, offset in MEASURE_OFFSETS.items():
        assert listed.pop(measure) == f"+{offset}"
    for measure, first in CORNER_OFFSETS.items():
        assert listed.pop(f"{', '.join(AXES)} of {measure}") == f"+{first} to +{first + len(AXES) - 1}"
    assert listed == {}
    rule = f"{STATS_BASE} + {STATS_STRIDE} *n*, for *n* below {STATS_FIELD_LIMIT}"
    assert rule in section("Statistics").replace("\n", " ")


def every_type() -> dict[str, Type]:
    """An example of every type that has statistics, by the name of its kind."""
    primitives: dict[str, Type] = {str(type_): type_ for type_ in NAMED.values() if type_ not in (UNKNOWN, VARIANT)}
    others: dict[str, Type] = {"decimal": Decimal(9, 2), "fixed": Fixed(3), "geometry": Geometry()}
    return {**primitives, **others, "geography": Geography()}


def test_the_matrix_of_measures_by_type_is_that_of_the_code() -> None:
    _, matrix = tables("Statistics")
    types = every_type()
    assert {row[0] for row in matrix} == set(types)
    for name, bounds, tight, counts, nan, average in matrix:
        measures = measures_of(types[name])
        is_shape = isinstance(types[name], (Geometry, Geography))
        assert bounds == ("struct" if is_shape else "yes")
        assert {"lower_bound", "upper_bound", "value_count", "null_value_count"} <= set(measures)
        assert counts == "yes"
        for cell, measure in ((tight, Measure.TIGHT), (nan, Measure.NANS), (average, Measure.AVERAGE_SIZE)):
            assert cell == ("yes" if measure in measures else ""), (name, measure)


def test_the_json_of_expressions_is_read_and_written_as_on_the_page(tmp_path: Path) -> None:
    shown = json.loads(re.findall(r"```json\n(.*?)```", section("Expressions"), re.DOTALL)[0])
    created = new_catalog(tmp_path).create_table(
        "db.t", schema="a int, city string, at timestamp_ntz", partition_by=["city", "day(at)"], format_version=4
    )
    path = Path(created.metadata_location.removeprefix("file://"))
    document = metadata_json(path)
    assert document["expressions"] == shown["expressions"][:1]
    assert document["partition-specs"] == shown["partition-specs"]
    read = decode_metadata(json.dumps({**document, **shown}).encode(), where=path.as_uri())
    written = json.loads(encode_metadata(read))
    assert {key: written[key] for key in shown} == shown
    assert "location" not in written


def test_the_page_states_defaults_and_keys_as_they_are() -> None:
    tree = section("The tree")
    assert f"`{ROOT_MAX_DATA_FILES.name}` ({ROOT_MAX_DATA_FILES.default})" in tree
    assert f"`{MANIFEST_DV_INLINE_MAX_BYTES.name}`" in tree
    (keys,) = tables("Table metadata")
    new = set(fields(METADATA_FIELDS, 4)) - set(fields(METADATA_FIELDS, 3))
    assert {row[0] for row in keys if row[1] == "new"} == new == {"expressions"}
