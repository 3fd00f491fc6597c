"""Any text given as a type is understood or refused with an error of ours."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from icefloe.errors import FormatError, UnsupportedError
from icefloe.model.schema.types import parse_type
from support.damage import damaged

SPELLINGS = ("decimal(38, 10)", "fixed[16]", "timestamptz", "geography(srid:4326, vincenty)")
TEXTS = st.one_of(st.text(), *(damaged(text.encode()).map(lambda b: b.decode(errors="replace")) for text in SPELLINGS))


@given(TEXTS)
def test_a_type_is_understood_or_refused(text: str) -> None:
    with contextlib.suppress(FormatError, UnsupportedError):
        parsed = parse_type(text)
        assert parse_type(str(parsed)) == parsed
