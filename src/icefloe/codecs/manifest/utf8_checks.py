"""Checks that text in Parquet manifests is UTF-8, which the Parquet reader does not (spec: Appendix A, Parquet)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from icefloe.errors import CorruptFile


def check_text(table: pa.Table, *, where: str) -> None:
    """Refuse a table with text that is not UTF-8 in any column, nested ones included; other columns cost nothing."""
    for field, column in zip(table.schema, table.itercolumns(), strict=True):
        if _has_text(field.type):
            for chunk in column.chunks:
                for path, array in _texts(field.name, chunk):
                    _check(path, array, where)


def _has_text(type_: pa.DataType) -> bool:
    if _is_text(type_):
        return True
    if pa.types.is_dictionary(type_):
        return _has_text(type_.value_type)
    return any(_has_text(type_.field(i).type) for i in range(type_.num_fields))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _texts(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """The arrays of text in an array."""
    type_ = array.type
    if _is_text(type_):
        yield path, array
    elif pa.types.is_dictionary(type_):
        yield from _texts(path, array.dictionary)
    elif pa.types.is_struct(type_):
        for i in range(type_.num_fields):
            if _has_text(type_.field(i).type):
                yield from _texts(f"{path}.{type_.field(i).name}", array.field(i))
    elif pa.types.is_map(type_):
        for name, child in (("key", array.keys), ("value", array.items)):
            if _has_text(child.type):
                yield from _texts(f"{path}.{name}", child)
    elif type_.num_fields == 1 and _has_text(type_):
        yield from _texts(f"{path}.element", array.values)


def _check(path: str, array: pa.Array, where: str) -> None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFile(f"{where}: {path[:200]}: text that is not UTF-8: {error}", location=where) from error
