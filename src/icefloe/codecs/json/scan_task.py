"""Scan tasks as JSON: a data file, the deletes that apply to it, and what is left of the filter.

(spec: File Scan Task Serialization). A task can be read on its own, for it carries its schema and partition spec. The
table's ``ManifestContext`` is needed only for delete files of other specs, and for columns that the schema lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icefloe.codecs.json.content_file import content_file_from_json, content_files_from_json, content_files_to_json
from icefloe.codecs.json.expressions import expr_from_json, expr_to_json
from icefloe.codecs.json.input import Count, Record, convert_json
from icefloe.codecs.json.partition_spec import spec_from_json, spec_to_json
from icefloe.codecs.json.record_shapes import join
from icefloe.codecs.json.schema import schema_from_json, schema_to_json
from icefloe.codecs.manifest.context import ManifestContext, partition_types
from icefloe.errors import FormatError, InputError
from icefloe.expr.filter.nodes import ALWAYS_TRUE, Expr
from icefloe.limits import DEFAULT, Limits
from icefloe.model.entries import ContentType
from icefloe.model.partition.spec import PartitionSpec, with_distinct_ids
from icefloe.model.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScanTask:
    """One data file to read.

    ``data_file`` is an entry table of one row, ``delete_files`` one of any number. ``start`` and ``length`` are the
    bytes of the file that belong to the task; None is the whole file.
    """

    schema: Schema
    spec: PartitionSpec
    data_file: pa.Table
    delete_files: pa.Table
    residual: Expr = ALWAYS_TRUE
    start: int | None = None
    length: int | None = None


class _TaskRecord(Record, frozen=True):
    schema: Any
    spec: Any
    data_file: Any
    delete_files: list[Any] | None = None
    residual_filter: Any = True
    start: Count | None = None
    length: Count | None = None


def scan_task_to_json(task: FileScanTask, context: ManifestContext | None = None) -> dict[str, Any]:
    """A task as a JSON object for msgspec to encode; ``context`` is that of its table."""
    known = _context(task.schema, task.spec, context, DEFAULT)
    if task.data_file.num_rows != 1:
        raise InputError(f"a scan task reads one data file, not {task.data_file.num_rows}")
    written = {
        "schema": schema_to_json(task.schema),
        "spec": spec_to_json(task.spec),
        "data-file": content_files_to_json(task.data_file, known)[0],
        "delete-files": content_files_to_json(task.delete_files, known),
        "residual-filter": expr_to_json(task.residual),
    }
    optional = {"start": task.start, "length": task.length}
    return written | {key: value for key, value in optional.items() if value is not None}


def scan_task_from_json(
    value: object, path: str = "file-scan-task", *, context: ManifestContext | None = None, limits: Limits = DEFAULT
) -> FileScanTask:
    """The task of a parsed JSON object; FormatError names the field that is wrong."""
    record: _TaskRecord = convert_json(value, _TaskRecord, path)
    schema = schema_from_json(record.schema, join(path, "schema"), limits=limits)
    spec = spec_from_json(record.spec, join(path, "spec"))
    known = _context(schema, spec, context, limits)
    deletes = [] if record.delete_files is None else record.delete_files
    task = FileScanTask(
        schema=schema,
        spec=known.spec(spec.spec_id),
        data_file=content_file_from_json(record.data_file, known, join(path, "data-file")),
        delete_files=content_files_from_json(deletes, known, join(path, "delete-files")),
        residual=expr_from_json(record.residual_filter, join(path, "residual-filter")),
        start=record.start,
        length=record.length,
    )
    _check(task, path)
    return task


def _check(task: FileScanTask, path: str) -> None:
    if task.data_file["content_type"][0].as_py() != int(ContentType.DATA):
        raise FormatError(f"{path}.data-file.content: expected DATA", field=f"{path}.data-file.content")
    if task.data_file["partition_spec_id"][0].as_py() != task.spec.spec_id:
        raise FormatError(f"{path}.data-file.spec-id: it is not that of the task's spec", field=f"{path}.data-file")
    for row, content in enumerate(task.delete_files["content_type"].to_pylist()):
        if content == int(ContentType.DATA):
            at = f"{path}.delete-files[{row}].content"
            raise FormatError(f"{at}: expected a delete file, got DATA", field=at)


def _context(schema: Schema, spec: PartitionSpec, context: ManifestContext | None, limits: Limits) -> ManifestContext:
    """The table information that is needed to read or write the files of a task."""
    types = {field_id: field.type for field_id, field in schema.by_id.items()}
    if context is None:
        return ManifestContext(
            location="",
            format_version=1,
            schema=schema,
            types=types,
            specs={spec.spec_id: spec},
            partition_types=partition_types((spec,), types),
            limits=limits,
        )
    types = {**context.types, **types}
    specs = {
        table_spec.spec_id: table_spec
        for table_spec in with_distinct_ids({**context.specs, spec.spec_id: spec}.values())
    }
    return replace(
        context, schema=schema, types=types, specs=specs, partition_types=partition_types(specs.values(), types)
    )
