"""The schema that the tests of evolution start from: every shape that columns can have."""

from __future__ import annotations

from icefloe.model.schema import Schema
from icefloe.model.types import DOUBLE, FLOAT, INT, STRING, Decimal, Field, List, Map, Struct

ADDRESS = Struct((Field(11, "street", STRING), Field(12, "zip", INT, True)))
KEY = Struct((Field(31, "k", INT, True),))
SCHEMA = Schema(
    fields=(
        Field(1, "id", INT, True),
        Field(2, "address", ADDRESS, True),
        Field(3, "tags", List(20, Struct((Field(21, "label", STRING), Field(22, "weight", FLOAT))), True)),
        Field(4, "prices", Map(30, KEY, 32, Struct((Field(33, "net", Decimal(9, 2)),)), True)),
        Field(5, "sizes", List(40, INT, True)),
        Field(6, "ratio", DOUBLE, True),
        Field(7, "note", STRING, doc="free text"),
    ),
    schema_id=3,
    identifier_field_ids=(1,),
)
LAST = 50
