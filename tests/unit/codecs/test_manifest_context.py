from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.codecs.manifest.context import manifest_context
from icefloe.errors import FormatError
from icefloe.model.partition.spec import PartitionField, PartitionSpec
from icefloe.model.schema.metadata_columns import DELETE_FILE_PATH
from icefloe.model.schema.types import DATE, DOUBLE, INT, STRING
from support.manifests.sample import IDS, context, metadata


def test_partition_types_are_those_of_the_transforms_results() -> None:
    types = context().partition_types
    assert {i: types[i] for i in (1000, 1001, 1002, 1003)} == {1000: STRING, 1001: DATE, 1002: INT, 1003: DOUBLE}


def test_void_and_unknown_transforms_have_no_value() -> None:
    parts = (
        PartitionField(source_id=3, field_id=1000, name="a", transform="void"),
        PartitionField(source_id=3, field_id=1001, name="b", transform="zorder[3]"),
        PartitionField(source_id=999, field_id=1002, name="c", transform="identity"),
    )
    table = replace(metadata(2), specs=(PartitionSpec(spec_id=0, fields=parts),), default_spec_id=0)
    assert manifest_context(table).partition_types == {}


def test_expressions_are_found_by_partition_field() -> None:
    assert context(4).expressions == {1001: 18, 1002: 19}


def test_identity_sources_are_known() -> None:
    assert {IDS["name"], IDS["price"]} <= context().identity_sources
    assert 16 not in context().identity_sources


def test_bounds_exist_for_primitive_and_reserved_columns_only() -> None:
    assert context().column_type(IDS["name"]) == STRING
    assert context().column_type(DELETE_FILE_PATH.id) == STRING
    assert context().column_type(16) is None
    assert context().column_type(12345) is None


def test_an_unknown_spec_is_refused() -> None:
    with pytest.raises(FormatError, match="no partition spec 9"):
        context().spec(9)
