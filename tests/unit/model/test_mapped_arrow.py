"""Files without ids: their columns get those of a name mapping, at every depth and however a format spells lists."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import FormatError, LimitError
from icefloe.model.arrow.conform import FIELD_ID, arrow_schema
from icefloe.model.arrow.name_mapped import apply_mapping, has_ids
from icefloe.model.arrow.schema_from_arrow import schema_from_arrow
from icefloe.model.evolution.evolve import evolve
from icefloe.model.evolution.steps import AddColumn, RenameColumn, SetDoc
from icefloe.model.schema.name_mapping import MappedField, NameMapping, mapping_of, updated_mapping
from icefloe.model.schema.types import INT
from unit.model.evolving import LAST, SCHEMA


def mapped(field_id: int | None, *names: str, fields: tuple[MappedField, ...] = ()) -> MappedField:
    return MappedField(names=names, field_id=field_id, fields=fields)


def bare(type_: pa.DataType | pa.Schema, element: str = "element") -> pa.DataType | pa.Schema:
    """The same without metadata at any depth, and with another spelling of list elements."""

    def field(field: pa.Field, name: str | None = None) -> pa.Field:
        return pa.field(field.name if name is None else name, bare(field.type, element), field.nullable)

    if isinstance(type_, pa.Schema):
        return pa.schema([field(f) for f in type_])
    if pa.types.is_struct(type_):
        return pa.struct([field(f) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(field(type_.key_field), field(type_.item_field))
    return pa.list_(field(type_.value_field, element)) if pa.types.is_list(type_) else type_


def id_of(field: pa.Field) -> int | None:
    return None if field.metadata is None or FIELD_ID not in field.metadata else int(field.metadata[FIELD_ID])


PLAIN = evolve(SCHEMA, [SetDoc(column="note", doc=None)], last_column_id=LAST).schema  # Arrow fields carry docs too
FILE = bare(arrow_schema(PLAIN))


def test_the_mapping_of_a_schema_gives_its_own_names_their_ids_back():
    assert not has_ids(FILE)
    assert apply_mapping(mapping_of(PLAIN), FILE).equals(arrow_schema(PLAIN), check_metadata=True)


@pytest.mark.parametrize("spelling", ["element", "item", "array"])
def test_a_parquet_file_gets_ids_however_it_spells_its_lists(tmp_path, spelling):
    path = tmp_path / "f.parquet"
    rows = pa.Table.from_batches([], bare(FILE, spelling))
    pq.write_table(rows, path, use_compliant_nested_type=False, store_schema=False)
    found = pq.read_schema(path)
    assert found.field("sizes").type.value_field.name == spelling

    applied = apply_mapping(mapping_of(PLAIN), found)

    assert schema_from_arrow(applied) == replace(PLAIN, schema_id=0, identifier_field_ids=())


@pytest.mark.parametrize("spelling", ["element", "item", "array", "bag", "list.element"])
@pytest.mark.parametrize("make", [pa.list_, pa.large_list, lambda field: pa.list_(field, 2)])
def test_elements_are_found_by_their_role(spelling, make):
    mapping = NameMapping(fields=(mapped(1, "sizes", fields=(mapped(2, "element"),)),))

    applied = apply_mapping(mapping, pa.schema({"sizes": make(pa.field(spelling, pa.int32()))}))

    element = applied.field("sizes").type.value_field
    assert (id_of(element), element.name) == (2, spelling)
    assert type(applied.field("sizes").type) is type(make(pa.field(spelling, pa.int32())))


def test_elements_may_also_be_mapped_by_the_name_that_the_file_has():
    mapping = NameMapping(fields=(mapped(1, "sizes", fields=(mapped(2, "array"),)),))

    applied = apply_mapping(mapping, pa.schema({"sizes": pa.list_(pa.field("array", pa.int32()))}))

    assert id_of(applied.field("sizes").type.value_field) == 2


def test_keys_and_values_are_found_by_their_role():
    mapping = NameMapping(fields=(mapped(1, "m", fields=(mapped(2, "key"), mapped(3, "value"))),))
    file = pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int32()), keys_sorted=True)

    applied = apply_mapping(mapping, pa.schema({"m": file})).field("m").type

    assert (id_of(applied.key_field), id_of(applied.item_field), applied.keys_sorted) == (2, 3, True)


def test_what_the_mapping_does_not_know_stays_without_id():
    mapping = NameMapping(fields=(mapped(1, "a"), mapped(None, "b", fields=(mapped(3, "x"),)), mapped(4)))
    inner = pa.struct({"x": pa.int32(), "y": pa.int32()})

    applied = apply_mapping(mapping, pa.schema({"c": inner, "b": inner, "a": inner}))

    assert applied.names == ["c", "b", "a"]
    assert [id_of(field) for field in applied] == [None, None, 1]
    assert [id_of(field) for field in applied.field("b").type] == [3, None]
    assert [id_of(field) for field in applied.field("c").type] == [None, None]
    assert [id_of(field) for field in applied.field("a").type] == [None, None]


def test_a_dot_is_part_of_a_name():
    mapping = NameMapping(fields=(mapped(1, "a.b"), mapped(2, "a", fields=(mapped(3, "b"),))))

    applied = apply_mapping(mapping, pa.schema({"a.b": pa.int32(), "a": pa.struct({"b": pa.int32()})}))

    assert [id_of(field) for field in applied] == [1, 2]
    assert id_of(applied.field("a").type.field("b")) == 3


@pytest.mark.parametrize("depth", ["top", "nested"])
def test_a_file_that_has_ids_is_left_alone(depth):
    own = pa.field("id", pa.int64(), metadata={FIELD_ID: b"77"})
    file = pa.schema([own, pa.field("note", pa.string())] if depth == "top" else [pa.field("note", pa.list_(own))])

    assert apply_mapping(mapping_of(SCHEMA), file) is file


def test_other_metadata_stays():
    file = pa.schema([pa.field("id", pa.int64(), metadata={"unit": "m"})], metadata={"who": "me"})

    applied = apply_mapping(mapping_of(SCHEMA), file)

    assert applied.metadata == {b"who": b"me"}
    assert applied.field("id").metadata == {b"unit": b"m", FIELD_ID: b"1"}


def test_two_columns_of_a_file_do_not_stand_for_one_column():
    mapping = NameMapping(fields=(mapped(1, "id", "record_id"),))

    with pytest.raises(FormatError, match="columns 'id' and 'record_id' of a file both map to id 1"):
        apply_mapping(mapping, pa.schema({"id": pa.int64(), "record_id": pa.int64()}))
    with pytest.raises(FormatError, match="columns 'id' and 'id'"):
        apply_mapping(mapping, pa.schema([pa.field("id", pa.int64())] * 2))


def test_a_file_that_is_nested_too_deeply_is_refused():
    mapping, type_ = mapped(1_000, "element"), pa.int32()
    for field_id in range(150):
        mapping, type_ = mapped(field_id, "element", fields=(mapping,)), pa.list_(type_)

    with pytest.raises(LimitError, match="nested deeper than 100"):
        apply_mapping(NameMapping(fields=(mapping,)), pa.schema({"element": type_}))


def test_old_and_new_files_are_read_after_the_schema_changed():
    steps = [RenameColumn(column="note", name="remark"), AddColumn(name="n", type=INT, parent="tags")]
    after = evolve(PLAIN, steps, last_column_id=LAST).schema
    mapping = updated_mapping(mapping_of(PLAIN), PLAIN, after)

    assert apply_mapping(mapping, FILE).equals(arrow_schema(PLAIN), check_metadata=True)
    assert apply_mapping(mapping, bare(arrow_schema(after))).equals(arrow_schema(after), check_metadata=True)
