"""What a plan tells of columns that were: every field the table ever had, and the names of files without ids."""

from __future__ import annotations

from dataclasses import replace

from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, LONG, STRING, Field, Struct
from icefloe.scan.plan import known_fields
from icefloe.scan.tasks import TASK, Plan

OLD = Schema(
    schema_id=2, fields=(Field(1, "a", INT), Field(2, "gone", STRING), Field(3, "s", Struct((Field(4, "x", INT),))))
)
NEW = Schema(schema_id=3, fields=(Field(1, "b", LONG), Field(3, "s", Struct((Field(5, "y", INT),)))))
BACK = Schema(schema_id=1, fields=(Field(1, "c", INT), Field(6, "first", INT)))


def table(current: int) -> TableMetadata:
    return TableMetadata(
        format_version=3,
        table_uuid="u",
        location="memory://t",
        last_updated_ms=0,
        last_column_id=6,
        schemas=(NEW, OLD, BACK),
        current_schema_id=current,
    )


def test_every_field_is_known_as_its_newest_schema_has_it() -> None:
    found = known_fields(table(3))
    assert {id_: field.name for id_, field in found.items()} == {1: "b", 2: "gone", 3: "s", 4: "x", 5: "y", 6: "first"}
    assert found[1].type == LONG


def test_the_current_schema_is_the_newest_whatever_its_id() -> None:
    assert known_fields(table(1))[1].name == "c"
    assert known_fields(table(2))[1].name == "a"


def test_a_plan_has_the_name_mapping_of_the_table() -> None:
    plan = Plan(tasks=TASK.empty_table(), schema=NEW, table_schema=NEW, filter=None)  # type: ignore[arg-type]
    assert plan.mapping is None
    named = replace(plan, properties={"schema.name-mapping.default": '[{"field-id": 1, "names": ["b", "old"]}]'})
    assert named.mapping is not None
    assert named.mapping.by_name["old"].field_id == 1
