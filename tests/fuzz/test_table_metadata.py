"""Damaged table metadata is refused with an error of ours, or read; nothing else."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefloe.codecs.json.table_metadata import decode_metadata, encode_metadata
from icefloe.errors import FormatError, UnsupportedError
from support.damage import damaged, damaged_json
from support.manifests.sample import metadata
from support.metadata_documents import document
from unit.codecs.test_unknown_keys import noted

GOOD = {
    **{f"v{version}": encode_metadata(metadata(version)) for version in (1, 2, 3, 4)},
    "snapshots": json.dumps(document(4)).encode(),
    "unknown keys": json.dumps(noted(4)).encode(),
    "gzip": encode_metadata(metadata(2), compression="gzip"),
}


@pytest.mark.parametrize("name", GOOD)
@given(choices=st.data())
def test_damaged_metadata_is_refused_or_read(name: str, choices: st.DataObject) -> None:
    ways = [damaged(GOOD[name])] if name == "gzip" else [damaged(GOOD[name]), damaged_json(GOOD[name])]
    data = choices.draw(st.one_of(ways))
    with contextlib.suppress(FormatError, UnsupportedError):
        # What was read is whole: it can be written again, and says the same.
        read = decode_metadata(data, where="v1.metadata.json")
        once = encode_metadata(read)
        assert encode_metadata(decode_metadata(once, where="again")) == once
        list(read.snapshots)
