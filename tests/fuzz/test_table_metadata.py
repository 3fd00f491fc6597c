"""Damaged table metadata is refused with an error of ours, or read; nothing else."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.damage import damaged, damaged_json
from icefloe.codecs.metadata_json import decode_metadata, encode_metadata
from icefloe.errors import FormatError, UnsupportedError
from unit.codecs.sample import metadata

GOOD = {version: encode_metadata(metadata(version)) for version in (2, 4)}


@pytest.mark.parametrize("version", GOOD)
@given(choices=st.data())
def test_damaged_metadata_is_refused_or_read(version: int, choices: st.DataObject) -> None:
    data = choices.draw(st.one_of(damaged(GOOD[version]), damaged_json(GOOD[version])))
    with contextlib.suppress(FormatError, UnsupportedError):
        # What was read is whole: it can be written again, and says the same.
        once = encode_metadata(decode_metadata(data, where="v1.metadata.json"))
        assert encode_metadata(decode_metadata(once, where="again")) == once
