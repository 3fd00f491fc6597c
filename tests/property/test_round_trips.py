"""What is written is what is read: the law every codec of single values and sets obeys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from icefloe.codecs.puffin.deletion_vector import decode_dv, encode_dv
from icefloe.codecs.puffin.puffin_file import Blob, decode_puffin_footer, encode_puffin
from support.statistics_files import read_blob

POSITIONS = st.one_of(st.integers(0, 2**17), st.integers(0, 2**40), st.integers(2**63 - 2**17, 2**63 - 1))
RUNS = st.tuples(POSITIONS, st.integers(0, 100)).map(lambda run: range(run[0], min(run[0] + run[1], 2**63)))


@given(st.lists(st.one_of(RUNS, POSITIONS.map(lambda position: [position]))))
def test_a_deletion_vector_comes_back_the_same(runs: list[list[int]]) -> None:
    positions = {position for run in runs for position in run}
    blob = encode_dv(BitMap64(positions))
    assert set(decode_dv(blob, where="blob", cardinality=len(positions))) == positions
    assert encode_dv(BitMap64(sorted(positions, reverse=True))) == blob


@given(st.lists(st.tuples(st.text(), st.binary()), max_size=5))
def test_the_blobs_of_a_puffin_file_come_back_the_same(blobs: list[tuple[str, bytes]]) -> None:
    data, places = encode_puffin([Blob(type=type_, data=content) for type_, content in blobs], created_by="test")
    footer = decode_puffin_footer(data, where="file")
    assert [(blob.type, read_blob(data, blob)) for blob in footer.blobs] == blobs
    assert tuple(blob.location for blob in footer.blobs) == places
