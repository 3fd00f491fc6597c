"""Measures a table for ``health``: files, deletes, manifests, metadata (spec: Scan Planning).

All figures come from the metadata of one snapshot, by whole columns. Data files are not opened. The folder of the table
is listed only if unreferenced files are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.base import Base
from icefloe.commit.idempotency import record_in
from icefloe.deletes.delete_index import attach_deletes
from icefloe.deletes.partition_keys import Ints, partition_codes
from icefloe.engines.engine import Engine
from icefloe.engines.file_sets import ListedFolder
from icefloe.maintenance.reachable import referenced_files
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, Measure, choose, of_type, partition_key, stat, total
from icefloe.model.metadata.properties import LEAF_TARGET_SIZE, MERGE_TARGET_SIZE, TARGET_FILE_SIZE
from icefloe.model.metadata.retention import ExpirePolicy, apply_policy
from icefloe.model.text.figures import Figures
from icefloe.scan.partition_values import partition_struct, partition_tuples
from icefloe.tree.root import Root, live_files, read_root

SMALL = 0.75  # of the target size: a smaller file is worth combining, as in Apache Iceberg's rewrite
MANY_SMALL = 5  # small files of one partition from which on they are combined
MOSTLY_DELETED = 0.3  # the share of deleted rows from which on a file is worth rewriting
MOSTLY_DEAD = 0.2  # the share of dead rows of a leaf
_SAMPLED = 1000  # partitions whose manifests are counted

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFigures(Figures):
    """The measured figures of a table at one snapshot."""

    data_files: int = 0
    data_bytes: int = 0
    rows: int = 0  # deleted ones included
    target_file_bytes: int = 0
    small_files: int = 0  # in partitions that have several of them
    small_bytes: int = 0
    small_files_after: int = 0  # if they are combined
    partitions: int = 0
    largest_partition: str = ""
    largest_partition_bytes: int = 0
    largest_partition_rows: int = 0
    median_partition_bytes: int = 0
    median_partition_rows: int = 0
    deletion_vectors: int = 0
    position_delete_files: int = 0
    equality_delete_files: int = 0
    delete_bytes: int = 0
    rows_deleted_by_vectors: int = 0
    rows_deleted_by_positions: int = 0  # of position delete files, at most
    equality_delete_rows: int = 0
    delete_ratio: float = 0.0  # rows deleted by position, of all rows
    files_with_deletes: int = 0
    files_mostly_deleted: int = 0
    bytes_mostly_deleted: int = 0
    delete_files_per_data_file: float = 0.0  # position and equality delete files that a reader opens, on average
    most_delete_files_of_a_data_file: int = 0
    manifests: int = 0
    manifest_bytes: int = 0
    manifests_after: int = 0  # if they are rewritten
    root_files: int = 0  # entries of files that the root itself has
    manifests_per_partition: float = 0.0  # data manifests that a filter on one partition opens, on average
    manifests_per_partition_after: float = 0.0
    leaf_rows: int = 0
    dead_leaf_rows: int = 0
    leaves_mostly_dead: int = 0
    snapshots: int = 0
    expirable_snapshots: int = 0
    refs: int = 0
    metadata_bytes: int = 0  # of the metadata file
    metadata_log_length: int = 0
    unreferenced_files: int | None = None  # none unless they were asked for
    unreferenced_bytes: int | None = None


def measure(base: Base, engine: Engine, *, now_ms: int, storage: bool = False) -> HealthFigures:
    """The figures of the current snapshot of a table."""
    store, metadata = base.store, base.metadata
    root = read_root(store, metadata.current_snapshot)
    leaves = root.leaves(*MANIFESTS)
    wanted = frozenset(partition_key(field.id) for field in partition_struct(store.context).fields)
    files = live_files(store, root, leaves, ContentType.DATA, *DELETES, wanted=wanted)
    data = choose(files, of_type(files, ContentType.DATA))
    deletes = choose(files, of_type(files, *DELETES))
    (codes,) = partition_codes([data], store.context) if data.num_rows > 0 else (np.zeros(0, np.int64),)
    figures: dict[str, object] = {}
    figures |= _file_figures(data, codes, base)
    figures |= _delete_figures(data, deletes, base)
    figures |= _manifest_figures(root, data, codes, base)
    figures |= _metadata_figures(base, now_ms)
    if storage:
        figures |= _storage_figures(base, engine)
    return HealthFigures(**figures)  # type: ignore[arg-type]


def _file_figures(data: pa.Table, codes: Ints, base: Base) -> dict[str, object]:
    target = TARGET_FILE_SIZE.of(base.metadata.properties)
    sizes, rows = _numbers(data, "file_size_in_bytes"), _numbers(data, "record_count")
    figures: dict[str, object] = {
        "data_files": data.num_rows,
        "data_bytes": int(sizes.sum()),
        "rows": int(rows.sum()),
        "target_file_bytes": target,
    }
    if data.num_rows == 0:
        return figures
    count = int(codes.max()) + 1
    is_small = sizes < SMALL * target
    small_count = np.bincount(codes[is_small], minlength=count)
    small_bytes = np.bincount(codes[is_small], weights=sizes[is_small], minlength=count)
    many = small_count >= MANY_SMALL
    after = np.ceil(small_bytes[many] / target)
    bytes_of = np.bincount(codes, weights=sizes, minlength=count)
    rows_of = np.bincount(codes, weights=rows, minlength=count)
    largest = int(bytes_of.argmax())
    return figures | {
        "small_files": int(small_count[many].sum()),
        "small_bytes": int(small_bytes[many].sum()),
        "small_files_after": int(after.sum()),
        "partitions": count,
        "largest_partition": _partition_text(data.slice(int(np.argmax(codes == largest)), 1), base),
        "largest_partition_bytes": int(bytes_of[largest]),
        "largest_partition_rows": int(rows_of[largest]),
        "median_partition_bytes": int(np.median(bytes_of)),
        "median_partition_rows": int(np.median(rows_of)),
    }


def _partition_text(file: pa.Table, base: Base) -> str:
    fields = partition_struct(base.store.context)
    spec = base.store.context.spec(file["partition_spec_id"][0].as_py())
    if len(fields.fields) == 0 or len(spec.fields) == 0:
        return ""
    own = {field.field_id for field in spec.fields}
    values = partition_tuples(file, fields)[0].as_py()
    return ", ".join(f"{field.name}={values[field.name]}" for field in fields.fields if field.id in own)


def _delete_figures(data: pa.Table, deletes: pa.Table, base: Base) -> dict[str, object]:
    if deletes.num_rows == 0 or data.num_rows == 0:
        return {}
    attached = attach_deletes(data, deletes, base.store.context).data
    is_vector = pc.is_valid(deletes["dv_offset"])
    vectors, others = deletes.filter(is_vector), deletes.filter(pc.invert(is_vector))
    positions = choose(others, of_type(others, ContentType.POSITION_DELETES))
    values = choose(others, of_type(others, ContentType.EQUALITY_DELETES))
    rows, sizes = _numbers(data, "record_count"), _numbers(data, "file_size_in_bytes")
    deleted = _numbers(attached, "dv_cardinality") + _named_rows(data, positions)
    ratio = np.divide(deleted, rows, out=np.zeros_like(rows), where=rows > 0)
    mostly = ratio >= MOSTLY_DELETED
    opened = np.asarray(pc.list_value_length(attached["deletes"]), np.float64)
    has_vector = np.asarray(pc.is_valid(attached["dv_location"]))
    by_vectors, by_positions = total(vectors, "record_count"), total(positions, "record_count")
    return {
        "deletion_vectors": vectors.num_rows,
        "position_delete_files": positions.num_rows,
        "equality_delete_files": values.num_rows,
        "delete_bytes": total(vectors, "dv_size_in_bytes") + total(others, "file_size_in_bytes"),
        "rows_deleted_by_vectors": by_vectors,
        "rows_deleted_by_positions": by_positions,
        "equality_delete_rows": total(values, "record_count"),
        "delete_ratio": float((by_vectors + by_positions) / max(1.0, rows.sum())),
        "files_with_deletes": int(np.count_nonzero(has_vector | (opened > 0))),
        "files_mostly_deleted": int(np.count_nonzero(mostly)),
        "bytes_mostly_deleted": int(sizes[mostly].sum()),
        "delete_files_per_data_file": float(opened.mean()),
        "most_delete_files_of_a_data_file": int(opened.max()),
    }


def _named_rows(data: pa.Table, positions: pa.Table) -> Floats:
    """The rows that position delete files of single data files delete in each data file."""
    named = positions.filter(pc.is_valid(positions["referenced_file"]))
    place = pc.index_in(named["referenced_file"], value_set=data["location"].combine_chunks())
    known = np.asarray(pc.is_valid(place))
    rows = _numbers(named, "record_count")[known]
    places = np.asarray(pc.drop_null(place), np.int64)
    return np.bincount(places, weights=rows, minlength=data.num_rows).astype(np.float64)


def _manifest_figures(root: Root, data: pa.Table, codes: Ints, base: Base) -> dict[str, object]:
    manifests = root.rows(*MANIFESTS)
    properties, rules = base.metadata.properties, base.metadata.rules
    target = (LEAF_TARGET_SIZE if rules.root_holds_files else MERGE_TARGET_SIZE).of(properties)
    size = total(manifests, "file_size_in_bytes")
    in_data = choose(manifests, of_type(manifests, ContentType.DATA_MANIFEST))
    deletes = manifests.num_rows - in_data.num_rows
    data_after = _least_manifests(in_data, target)
    leaf_rows, dead = _dead_rows(root, manifests)
    share = np.divide(dead, leaf_rows, out=np.zeros_like(dead), where=leaf_rows > 0)
    return {
        "manifests": manifests.num_rows,
        "manifest_bytes": size,
        "manifests_after": data_after + min(1, deletes),
        "root_files": root.rows(ContentType.DATA, *DELETES).num_rows,
        "manifests_per_partition": _opened(in_data, data, codes, base),
        "manifests_per_partition_after": _opened_after(codes, data_after),
        "leaf_rows": int(leaf_rows.sum()),
        "dead_leaf_rows": int(dead.sum()),
        "leaves_mostly_dead": int(np.count_nonzero(share >= MOSTLY_DEAD)),
    }


def _least_manifests(manifests: pa.Table, target: int) -> int:
    """The number of manifests after a rewrite: each spec has its own, of the target size."""
    if manifests.num_rows == 0:
        return 0
    sizes = manifests.group_by("partition_spec_id").aggregate([("file_size_in_bytes", "sum")])
    return int(np.ceil(np.asarray(sizes["file_size_in_bytes_sum"]) / target).clip(1).sum())


def _dead_rows(root: Root, manifests: pa.Table) -> tuple[Floats, Floats]:
    """The rows of every leaf, and how many of them are DELETED or hidden by a manifest deletion vector."""
    live = _numbers(manifests, "added_files_count") + _numbers(manifests, "existing_files_count")
    dead = _numbers(manifests, "deleted_files_count")
    leaves, counts = root.dead.counts
    if len(leaves) > 0 and manifests.num_rows > 0:
        place = pc.index_in(manifests["location"], value_set=leaves.combine_chunks())
        dead = dead + np.asarray(pc.fill_null(pc.take(counts, place), 0), np.float64)
    return live + _numbers(manifests, "deleted_files_count"), dead


def _opened(manifests: pa.Table, data: pa.Table, codes: Ints, base: Base) -> float:
    """How many data manifests have a partition in their ranges, on average over a sample of partitions."""
    if manifests.num_rows == 0 or data.num_rows == 0:
        return float(manifests.num_rows)
    _, first = np.unique(codes, return_index=True)
    sample = data.take(pa.array(first[:: max(1, len(first) // _SAMPLED)]))
    may = _np_equal(sample["partition_spec_id"], manifests["partition_spec_id"])
    for field in partition_struct(base.store.context).fields:
        lower, upper, value = (
            stat(Measure.LOWER, partition_key(field.id)),
            stat(Measure.UPPER, partition_key(field.id)),
            stat(Measure.LOWER, partition_key(field.id)),
        )
        if lower not in manifests.column_names or value not in sample.column_names:
            continue
        lows, highs, values = _ranks(manifests[lower], manifests[upper], sample[value])
        unknown = (lows < 0) | (highs < 0)
        inside = (lows[None, :] <= values[:, None]) & (values[:, None] <= highs[None, :])
        may &= inside | unknown[None, :] | (values < 0)[:, None]
    return float(may.sum(axis=1).mean())


def _np_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    equal: npt.NDArray[np.bool_] = np.asarray(left)[:, None] == np.asarray(right)[None, :]
    return equal


def _ranks(*columns: pa.ChunkedArray) -> Iterator[Ints]:
    """Columns of one type as numbers in the order of their values; -1 for null."""
    arrays = [column.combine_chunks().cast(columns[0].type) for column in columns]
    known = pc.unique(pa.concat_arrays(arrays)).drop_null()
    ordered = known.take(pc.sort_indices(known))
    for array in arrays:
        yield np.asarray(pc.fill_null(pc.index_in(array, value_set=ordered), -1), np.int64)


def _opened_after(codes: Ints, manifests: int) -> float:
    """The same if the entries are sorted by partition and divided evenly."""
    if len(codes) == 0 or manifests == 0:
        return 0.0
    ordered = np.sort(codes)
    _, first, counts = np.unique(ordered, return_index=True, return_counts=True)
    place = first * manifests // len(codes), (first + counts - 1) * manifests // len(codes)
    return float((place[1] - place[0] + 1).mean())


def _metadata_figures(base: Base, now_ms: int) -> dict[str, object]:
    metadata = base.metadata
    return {
        "snapshots": len(metadata.snapshots),
        "expirable_snapshots": len(apply_policy(metadata, ExpirePolicy(now_ms=now_ms), record_in).expired),
        "refs": len(metadata.refs),
        "metadata_bytes": base.store.io.size(base.pointer),
        "metadata_log_length": len(metadata.metadata_log),
    }


def _storage_figures(base: Base, engine: Engine) -> dict[str, object]:
    """The files in the table's folder that nothing references."""
    folder = base.metadata.location.rstrip("/")
    listing = ListedFolder(io=base.store.io, folder=folder, table_location=folder)
    others = engine.file_sets.unreferenced(listing, lambda: referenced_files(base, hidden=True)).files
    return {"unreferenced_files": others.num_rows, "unreferenced_bytes": total(others, "bytes")}


def _numbers(rows: pa.Table, name: str) -> Floats:
    """A column as numbers; unknown counts are 0."""
    return np.asarray(pc.fill_null(rows[name], 0), np.float64)
