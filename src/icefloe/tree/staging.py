"""The files that a commit writes to the metadata folder, and the leaves that its attempts share.

A leaf of new files does not depend on the base, as its sequence numbers are inherited from the root, so later attempts
reuse it. At the end a leaf may be in no root, because it was merged in the same commit, or because the format version
or the expressions of the table changed in between. The end of the commit deletes such leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifests import encode_leaf, extension
from icefloe.codecs.value.promoted_bounds import in_terms_of
from icefloe.errors import AlreadyExists, StorageError
from icefloe.model.entries import ContentType, Measure, empty, partition_key, put, stat
from icefloe.tree.store import ManifestStore

_SAMPLE = 1000  # rows encoded to estimate the size of a leaf
_UNCERTAIN = 4  # a leaf may be larger than its size in memory lets expect, by no more than this factor
_FULL = 1.5  # target sizes that a leaf of several entries may have


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLeaf:
    """A leaf that was written, with its rows as stored."""

    location: str
    size: int
    content: ContentType  # DATA_MANIFEST or DELETE_MANIFEST
    spec_id: int
    rows: pa.Table

    @property
    def is_data(self) -> bool:
        """Whether it lists data files, not deletes."""
        return self.content is ContentType.DATA_MANIFEST


# What the leaves of a snapshot depend on: its id, the content, the format version, the expressions of partition fields.
_ReuseKey: TypeAlias = tuple[int, ContentType, int, tuple[tuple[int, int], ...]]


class Staging:
    """The files that one commit has written to the metadata folder of the table."""

    def __init__(self, folder: str, new_uuid: Callable[[], UUID]) -> None:
        self.folder = folder
        self.written: dict[str, int] = {}  # location -> bytes
        self._uuid = new_uuid()
        self._numbers = count()
        self._of_attempt: list[str] = []  # files that other attempts cannot reuse
        self._reusable: dict[_ReuseKey, tuple[NewLeaf, ...]] = {}
        self._leaves: set[str] = set()
        self._in_roots: set[str] = set()  # leaves that a root of this attempt lists

    def write(self, store: ManifestStore, files: Mapping[str, bytes]) -> None:
        """Write files of this attempt; all are durable on return.

        Their names are new, so a name that is taken was taken by a repeated request: StorageError, not AlreadyExists.
        """
        try:
            store.io.write_many(list(files.items()))
        except AlreadyExists as error:
            raise StorageError(
                f"{error}, although its name is new: the storage repeated a request, or does not keep the metadata of"
                " objects; nothing was committed",
                **error.context,
            ) from error
        self.written.update({location: len(data) for location, data in files.items()})
        self._of_attempt.extend(files)

    def new_location(self, kind: str, suffix: str) -> str:
        """A new location for a file that is not a leaf, different in every call."""
        return f"{self.folder}/{self._uuid}-{kind}{next(self._numbers)}.{suffix}"

    def forget_attempt(self) -> tuple[str, ...]:
        """Forget the files of an attempt except reusable leaves, and return them for deletion."""
        self._in_roots.clear()
        return self._forget(self._of_attempt)

    def begin_again(self) -> tuple[str, ...]:
        """The files of the attempt so far except reusable leaves. Its roots begin again; ``forget`` these after it."""
        self._in_roots.clear()
        return tuple(self._of_attempt)

    def forget(self, locations: Sequence[str]) -> tuple[str, ...]:
        """Forget some files, and return them for deletion."""
        return self._forget(list(locations))

    def forget_since(self, count: int) -> tuple[str, ...]:
        """Forget all but the first files written, those of a failed update, and return them for deletion."""
        return self._forget(list(self.written)[count:])

    def forget_unlisted(self) -> tuple[str, ...]:
        """Forget the leaves that no root of the last attempt lists, and return them for deletion."""
        return self._forget(sorted(self._leaves - self._in_roots))

    def record_root(self, root: pa.Table) -> None:
        """Record the leaves that a new root lists."""
        if len(self._leaves) > 0:
            listed = root["location"].filter(pc.is_in(root["location"], value_set=pa.array(self._leaves, pa.string())))
            self._in_roots.update(listed.to_pylist())

    def _forget(self, locations: list[str]) -> tuple[str, ...]:
        forgotten = tuple(location for location in locations if self.written.pop(location, None) is not None)
        self._leaves.difference_update(forgotten)
        self._of_attempt = [location for location in self._of_attempt if location in self.written]
        unusable = [k for k, leaves in self._reusable.items() if any(leaf.location in forgotten for leaf in leaves)]
        for key in unusable:
            del self._reusable[key]
        return forgotten

    def write_leaves(
        self,
        store: ManifestStore,
        rows: pa.Table,
        *,
        content: ContentType,
        target: int | None = None,
        cluster_by: tuple[int, ...] = (),
    ) -> tuple[NewLeaf, ...]:
        """Write one leaf for each partition spec of the rows, or with ``target`` several of about that many bytes."""
        specs = pc.unique(rows["partition_spec_id"]).to_pylist()
        parts = ((s, rows.filter(pc.equal(rows["partition_spec_id"], s)) if len(specs) > 1 else rows) for s in specs)
        return tuple(
            leaf
            for spec_id, part in parts
            for leaf in self._write_sized(store, part, target, cluster_by, content=content, spec_id=spec_id)
        )

    def reuse_or_write(
        self,
        store: ManifestStore,
        snapshot_id: int,
        parts: Callable[[], Iterable[pa.Table]],
        *,
        content: ContentType,
        target: int | None = None,
    ) -> tuple[NewLeaf, ...]:
        """The leaves that an earlier attempt wrote for a snapshot, or new leaves of the parts.

        Leaves depend on the format version, and V4 leaves on the expressions: their ids identify partition values.
        """
        expressions = tuple(sorted(store.context.expressions.items()))
        key = (snapshot_id, content, store.context.format_version, expressions)
        if key in self._reusable:  # another commit may have promoted a column in between
            return tuple(replace(leaf, rows=in_terms_of(leaf.rows, store.context)) for leaf in self._reusable[key])
        written = (self.write_leaves(store, part, content=content, target=target) for part in parts())
        leaves = tuple(chain.from_iterable(written))
        self._reusable[key] = leaves
        reusable = {leaf.location for leaf in leaves}
        self._of_attempt = [location for location in self._of_attempt if location not in reusable]
        return leaves

    def _write_sized(
        self,
        store: ManifestStore,
        rows: pa.Table,
        target: int | None,
        cluster_by: tuple[int, ...],
        *,
        content: ContentType,
        spec_id: int,
    ) -> Iterator[NewLeaf]:
        """Leaves of about ``target`` bytes, each with a range of partitions; the size of a row is sampled.

        Bytes that a leaf has without entries are not counted. A leaf of several entries is not much larger.
        """

        def encoded(part: pa.Table) -> bytes:
            return encode_leaf(part, store.context, content=content, spec_id=spec_id)

        row_size, fixed = 0.0, 0
        if target is not None and rows.num_rows > 1 and estimated_size(rows) * _UNCERTAIN > target:
            sample = rows.slice(0, _SAMPLE)
            fixed = empty_leaf_size(store, content, spec_id)
            row_size = (len(encoded(sample)) - fixed) / sample.num_rows
        if target is None or round(rows.num_rows * row_size / target) < 2:
            yield self._write_leaf(store, rows, encoded(rows), content=content, spec_id=spec_id)
            return
        rows, start = sorted_by_partition(rows, store, cluster_by).combine_chunks(), 0
        while start < rows.num_rows:
            remaining = rows.num_rows - start
            count = -(-remaining // max(1, round(remaining * row_size / target)))
            data = encoded(rows.slice(start, count))
            while count > 1 and len(data) - fixed > _FULL * target:  # a few rows compress less well than many
                count = max(1, min(count - 1, count * target // (len(data) - fixed)))
                data = encoded(rows.slice(start, count))
            yield self._write_leaf(store, rows.slice(start, count), data, content=content, spec_id=spec_id)
            start, row_size = start + count, (len(data) - fixed) / count

    def _write_leaf(
        self, store: ManifestStore, rows: pa.Table, data: bytes, *, content: ContentType, spec_id: int
    ) -> NewLeaf:
        location = f"{self.folder}/{self._uuid}-m{next(self._numbers)}.{extension(store.context)}"
        self.write(store, {location: data})
        self._leaves.add(location)
        stored = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
        store.remember_leaf(location, stored, content=content, spec_id=spec_id)
        return NewLeaf(location=location, size=len(data), content=content, spec_id=spec_id, rows=stored)


def empty_leaf_size(store: ManifestStore, content: ContentType, spec_id: int) -> int:
    """The bytes that a leaf has without entries: the schemas in it."""
    return len(encode_leaf(empty(), store.context, content=content, spec_id=spec_id))


def sorted_by_partition(rows: pa.Table, store: ManifestStore, first: tuple[int, ...] = ()) -> pa.Table:
    """The rows sorted by partition values, by the fields ``first`` first; rows of one partition keep their order."""
    field_ids = dict.fromkeys((*first, *store.context.partition_fields))
    keys = (stat(Measure.LOWER, partition_key(field_id)) for field_id in field_ids)
    order = [(key, "ascending") for key in keys if key in rows.column_names]
    return rows if len(order) == 0 else rows.sort_by(order)


def estimated_size(rows: pa.Table) -> int:
    """About how many bytes rows take in a manifest: two fifths of their size in memory, due to compression."""
    not_null = (column for column in rows.columns if column.null_count < rows.num_rows)
    total: int = sum(column.nbytes for column in not_null)
    return total * 2 // 5
