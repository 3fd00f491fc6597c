"""Leaves that a commit writes, kept through all its attempts.

A leaf of new files does not depend on the base (its sequence numbers are inherited from the root), so an attempt that
lost the race leaves it to the next one. A leaf that no root names in the end, because it was merged at once or because
the table's version or its expressions changed meanwhile, is left to whoever ends the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.manifests import encode_leaf, extension
from icefloe.codecs.value.promoted_bounds import in_terms_of
from icefloe.model.entries import partition_key, put, stat
from icefloe.tree.store import ManifestStore

_SAMPLE = 1000  # rows that tell how large a leaf of many will be


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLeaf:
    """A leaf that was written, with its rows as stored."""

    location: str
    size: int
    delete: bool
    spec_id: int
    rows: pa.Table


class Staging:
    """The files one commit has written under the table's metadata folder."""

    def __init__(self, folder: str, new_uuid: Callable[[], UUID]) -> None:
        self.folder = folder
        self.written: dict[str, int] = {}  # location -> bytes
        self._uuid = new_uuid()
        self._numbers = count()
        self._of_attempt: list[str] = []  # of no use to another attempt
        self._reusable: dict[str, tuple[NewLeaf, ...]] = {}
        self._leaves: set[str] = set()
        self._named: set[str] = set()  # leaves that a root of this attempt names

    def write(self, store: ManifestStore, files: Mapping[str, bytes]) -> None:
        """Write files of this attempt, all of them durable on return."""
        store.io.write_many(list(files.items()))
        self.written.update({location: len(data) for location, data in files.items()})
        self._of_attempt.extend(files)

    def new_location(self, kind: str, suffix: str) -> str:
        """Where to write a file that is no leaf; every call gives another location."""
        return f"{self.folder}/{self._uuid}-{kind}{next(self._numbers)}.{suffix}"

    def forget_attempt(self) -> tuple[str, ...]:
        """Forget the files of an attempt, which the caller deletes; what can be reused stays."""
        self._named.clear()
        return self._forget(self._of_attempt)

    def forget_since(self, count: int) -> tuple[str, ...]:
        """Forget all but the first files written, which is what an update that failed leaves behind."""
        return self._forget(list(self.written)[count:])

    def forget_unnamed(self) -> tuple[str, ...]:
        """Forget the leaves that no root of the last attempt names."""
        return self._forget(sorted(self._leaves - self._named))

    def named_by(self, root: pa.Table) -> None:
        """Take note of the leaves that a new root names."""
        if len(self._leaves) > 0:
            named = root["location"].filter(pc.is_in(root["location"], value_set=pa.array(self._leaves, pa.string())))
            self._named.update(named.to_pylist())

    def _forget(self, locations: list[str]) -> tuple[str, ...]:
        gone = tuple(location for location in locations if self.written.pop(location, None) is not None)
        self._leaves.difference_update(gone)
        self._of_attempt = [location for location in self._of_attempt if location in self.written]
        lost = [key for key, leaves in self._reusable.items() if any(leaf.location in gone for leaf in leaves)]
        for key in lost:
            del self._reusable[key]
        return gone

    def write_leaves(
        self, store: ManifestStore, rows: pa.Table, *, delete: bool, target: int | None = None
    ) -> tuple[NewLeaf, ...]:
        """One leaf for each partition spec of the rows; with ``target`` as many as keep each near so many bytes."""
        specs = pc.unique(rows["partition_spec_id"]).to_pylist()
        parts = ((s, rows.filter(pc.equal(rows["partition_spec_id"], s)) if len(specs) > 1 else rows) for s in specs)
        return tuple(
            leaf
            for spec_id, part in parts
            for leaf in self._write_near(store, part, target, delete=delete, spec_id=spec_id)
        )

    def reuse_or_write(
        self,
        store: ManifestStore,
        key: str,
        parts: Callable[[], Iterable[pa.Table]],
        *,
        delete: bool,
        target: int | None = None,
    ) -> tuple[NewLeaf, ...]:
        """The leaves written under ``key`` by an earlier attempt, or new ones of parts.

        Each version writes its own, and each set of expressions: leaves of V4 have partition values under their ids.
        """
        key = f"{key} {store.context.format_version} {sorted(store.context.expressions.items())}"
        if key in self._reusable:  # another commit may have promoted a column since they were written
            return tuple(replace(leaf, rows=in_terms_of(leaf.rows, store.context)) for leaf in self._reusable[key])
        written = [self.write_leaves(store, part, delete=delete, target=target) for part in parts()]
        leaves = tuple(leaf for each in written for leaf in each)
        self._reusable[key] = leaves
        kept = {leaf.location for leaf in leaves}
        self._of_attempt = [location for location in self._of_attempt if location not in kept]
        return leaves

    def _write_near(
        self, store: ManifestStore, rows: pa.Table, target: int | None, *, delete: bool, spec_id: int
    ) -> Iterator[NewLeaf]:
        """Leaves of about ``target`` bytes, each with a range of partitions; some rows tell what a row takes."""
        if target is None or stored_bytes(rows) <= target:
            yield self._write_leaf(store, rows, delete=delete, spec_id=spec_id)
            return
        rows = by_partition(rows, store).combine_chunks()
        some = rows.slice(0, _SAMPLE)
        start, width = 0, len(encode_leaf(some, store.context, delete=delete, spec_id=spec_id)) / some.num_rows
        while start < rows.num_rows:
            rest = rows.num_rows - start
            size = -(-rest // max(1, round(rest * width / target)))
            leaf = self._write_leaf(store, rows.slice(start, size), delete=delete, spec_id=spec_id)
            start, width = start + size, leaf.size / size
            yield leaf

    def _write_leaf(self, store: ManifestStore, rows: pa.Table, *, delete: bool, spec_id: int) -> NewLeaf:
        data = encode_leaf(rows, store.context, delete=delete, spec_id=spec_id)
        location = f"{self.folder}/{self._uuid}-m{next(self._numbers)}.{extension(store.context)}"
        self.write(store, {location: data})
        self._leaves.add(location)
        stored = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
        store.remember_leaf(location, stored, delete=delete, spec_id=spec_id)
        return NewLeaf(location=location, size=len(data), delete=delete, spec_id=spec_id, rows=stored)


def by_partition(rows: pa.Table, store: ManifestStore) -> pa.Table:
    """The rows in the order of their partition values; rows of one partition stay in theirs."""
    keys = (stat("lower_bound", partition_key(field_id)) for field_id in store.context.partition_fields)
    order = [(key, "ascending") for key in keys if key in rows.column_names]
    return rows if len(order) == 0 else rows.sort_by(order)


def stored_bytes(rows: pa.Table) -> int:
    """About how many bytes rows take in a manifest: what they take in memory, compressed to two fifths."""
    told = (column for column in rows.columns if column.null_count < rows.num_rows)
    total: int = sum(column.nbytes for column in told)
    return total * 2 // 5
