"""Statistics files: Puffin files with blobs about a snapshot, and their entries in table metadata.

Blobs are stored unchanged. Only the property ``ndv`` of a Theta sketch is used, its estimated number of distinct values
(spec: Table statistics).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icefloe.codecs.puffin.puffin_file import Blob, encode_puffin, footer_bytes
from icefloe.model.metadata.statistics_files import BlobMetadata, StatisticsFile

THETA_SKETCH = "apache-datasketches-theta-v1"
NDV = "ndv"


def theta_blob(sketch: bytes, *, field_id: int, ndv: int, snapshot_id: int, sequence_number: int) -> Blob:
    """The blob of a Theta sketch, in its compact form, of one column's values."""
    return Blob(
        type=THETA_SKETCH,
        data=sketch,
        fields=(field_id,),
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        properties={NDV: str(ndv)},
        compression_codec="zstd",
    )


def encode_statistics(
    blobs: Sequence[Blob], *, snapshot_id: int, location: str, created_by: str
) -> tuple[bytes, StatisticsFile]:
    """A statistics file to be written at a location, and its entry.

    >>> blob = theta_blob(b"sketch", field_id=3, ndv=42, snapshot_id=7, sequence_number=1)
    >>> data, entry = encode_statistics([blob], snapshot_id=7, location="s3://b/s.puffin", created_by="doc")
    >>> distinct_values(entry)
    {3: 42}
    """
    data, _ = encode_puffin(blobs, created_by)
    entry = StatisticsFile(
        snapshot_id=snapshot_id,
        statistics_path=location,
        file_size_in_bytes=len(data),
        file_footer_size_in_bytes=footer_bytes(data),
        blob_metadata=tuple(_described(blob) for blob in blobs),
    )
    return data, entry


def _described(blob: Blob) -> BlobMetadata:
    return BlobMetadata(
        type=blob.type,
        snapshot_id=blob.snapshot_id,
        sequence_number=blob.sequence_number,
        fields=blob.fields,
        properties=dict(blob.properties),
    )


def distinct_values(entry: StatisticsFile) -> Mapping[int, int]:
    """Estimated numbers of distinct values by column id, from the properties of Theta sketches alone."""
    estimates: dict[int, int] = {}
    for blob in entry.blob_metadata:
        text = blob.properties.get(NDV, "")
        if blob.type == THETA_SKETCH and len(blob.fields) == 1 and text.isascii() and text.isdecimal():
            estimates[blob.fields[0]] = int(text[:18])
    return estimates
