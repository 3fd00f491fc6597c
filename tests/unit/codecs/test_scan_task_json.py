"""File scan tasks as JSON: whole tasks survive, and errors say where in the task something is wrong."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from icefloe.codecs.json.scan_task import FileScanTask, scan_task_from_json, scan_task_to_json
from icefloe.errors import FormatError, InputError, LimitError, UnsupportedError
from icefloe.expr.filter.nodes import ALWAYS_FALSE, ALWAYS_TRUE, Op, Predicate, conjunction, negation
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import entries
from icefloe.model.partition.spec import UNPARTITIONED
from icefloe.model.schema.schema import Schema
from icefloe.model.schema.types import INT, Field
from support.damage import damaged_json
from support.manifests.random_entries import data_dv, differences, equality_delete, every_type
from support.manifests.sample import EVERY_TYPE, MIXED, SCHEMA, column_stats, context, data_file, mixed_partition, table
from unit.codecs.test_content_file_json import HISTORY

TASK = FileScanTask(
    schema=SCHEMA,
    spec=MIXED,
    data_file=table([data_file(0, **mixed_partition(), **column_stats("id", 1, 9))]),
    delete_files=table([data_dv(0, **mixed_partition(count=3)), equality_delete(1, **mixed_partition())]),
    residual=conjunction([parse_filter("id > 5"), negation(parse_filter("name = 'a'"))]),
    start=4,
    length=996,
)


def through_json(task: FileScanTask, **options: Any) -> FileScanTask:
    text = json.dumps(scan_task_to_json(task, options.get("context")), allow_nan=False)
    return scan_task_from_json(json.loads(text), **options)


def same(before: FileScanTask, after: FileScanTask) -> None:
    assert set(differences(before.data_file, after.data_file)) <= set(HISTORY)
    assert set(differences(before.delete_files, after.delete_files)) <= set(HISTORY)
    assert replace(after, data_file=before.data_file, delete_files=before.delete_files) == before


def test_a_task_can_be_read_on_its_own():
    same(TASK, through_json(TASK))


def test_a_task_of_a_file_with_every_type_survives():
    whole = FileScanTask(schema=SCHEMA, spec=EVERY_TYPE, data_file=table([every_type()]), delete_files=table([]))

    after = through_json(whole)

    same(whole, after)
    assert (after.start, after.length, after.residual) == (None, None, ALWAYS_TRUE)


@pytest.mark.parametrize("residual", [ALWAYS_TRUE, ALWAYS_FALSE], ids=str)
def test_a_constant_residual_survives(residual):
    assert through_json(replace(TASK, residual=residual)).residual == residual


def test_only_the_keys_of_the_specification_are_written_for_a_whole_file():
    written = scan_task_to_json(replace(TASK, start=None, length=None))

    assert list(written) == ["schema", "spec", "data-file", "delete-files", "residual-filter"]


def test_delete_files_and_residual_may_be_left_out():
    value = scan_task_to_json(TASK)
    del value["delete-files"], value["residual-filter"]

    read = scan_task_from_json(value)

    assert read.delete_files.num_rows == 0
    assert read.residual == ALWAYS_TRUE


def test_a_delete_file_of_another_spec_needs_the_context_of_its_table():
    wide = replace(TASK, delete_files=table([equality_delete(1)]))
    alone = Schema(fields=(Field(1, "x", INT),))

    same(wide, through_json(wide, context=context()))
    with pytest.raises(FormatError, match="no partition spec 0"):
        scan_task_to_json(wide)
    with pytest.raises(FormatError, match=r"task\.delete-files\[0\]\.spec-id"):
        scan_task_from_json(scan_task_to_json(wide, context()), "task")
    with pytest.raises(UnsupportedError, match="name"):
        scan_task_to_json(replace(TASK, schema=alone))  # the types of its partition values are not in the schema


def test_columns_that_the_schema_lacks_are_known_from_the_context_of_the_table():
    narrow = replace(TASK, schema=Schema(fields=SCHEMA.fields[:1]), residual=ALWAYS_TRUE)

    same(narrow, through_json(narrow, context=context()))


def test_a_task_reads_exactly_one_data_file():
    with pytest.raises(InputError, match="one data file, not 2"):
        scan_task_to_json(replace(TASK, data_file=table([data_file(), data_file()])))


def broken(*path: str, value: object) -> dict[str, Any]:
    """The task with the value at a path replaced."""
    whole = json.loads(json.dumps(scan_task_to_json(TASK)))
    holder = whole
    for key in path[:-1]:
        holder = holder[int(key) if key.isdecimal() else key]
    holder[path[-1]] = value
    return whole


BROKEN = [
    ([], "task"),
    ({}, "task"),
    (broken("schema", value=1), "task.schema"),
    (broken("schema", "fields", "0", "type", value="integer"), "task.schema.fields[0].type"),
    (broken("spec", "fields", "0", "source-id", value="x"), "task.spec.fields[0].source-id"),
    (broken("spec", "fields", "2", "transform", value="bucket[0]"), "task.spec.fields[2].transform: bucket[0]"),
    (broken("spec", "spec-id", value=8), "task.data-file.spec-id"),
    (broken("data-file", value=[]), "task.data-file"),
    (broken("data-file", "record-count", value=-1), "task.data-file.record-count"),
    (broken("data-file", "content", value="POSITION_DELETES"), "task.data-file.content"),
    (broken("data-file", "partition", "1000", value=1), "task.data-file.partition.1000"),
    (broken("delete-files", value={}), "task.delete-files"),
    (broken("delete-files", "1", "content", value="DATA"), "task.delete-files[1].content"),
    (broken("delete-files", "1", "equality-ids", value=["x"]), "task.delete-files[1].equality-ids[0]"),
    (broken("residual-filter", value={"type": "between"}), "task.residual-filter"),
    (broken("start", value=-1), "task.start"),
    (broken("length", value="all"), "task.length"),
]


@pytest.mark.parametrize(("value", "where"), BROKEN, ids=[where for _, where in BROKEN])
def test_a_broken_task_is_a_format_error_that_says_where(value, where):
    with pytest.raises(FormatError) as caught:
        scan_task_from_json(value, "task")
    assert str(caught.value).startswith(where)


def test_a_type_too_wide_for_the_memory_is_a_limit_error():
    value = broken("schema", "fields", "9", "type", value="fixed[999999999]")

    with pytest.raises(LimitError, match="1 values of type"):
        scan_task_from_json(value | {"data-file": value["data-file"] | {"partition": {}}, "delete-files": []})


def test_a_residual_of_values_survives():
    residual = Predicate(Op.IN, "id", (1, 2))
    simple = FileScanTask(
        schema=Schema(fields=(Field(1, "id", INT),)),
        spec=UNPARTITIONED,
        data_file=entries([data_file()]),
        delete_files=entries([]),
        residual=residual,
    )

    assert through_json(simple).residual == residual


@given(damaged_json(json.dumps(scan_task_to_json(TASK)).encode()))
def test_damaged_tasks_are_read_or_refused(text):
    with contextlib.suppress(FormatError, UnsupportedError):
        read = scan_task_from_json(json.loads(text))
        assert read.data_file.num_rows == 1
