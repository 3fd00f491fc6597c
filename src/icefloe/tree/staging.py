"""Leaves that a commit writes, kept through all its attempts.

A leaf of new files does not depend on the base (its sequence numbers are inherited from the root), so an attempt that
lost the race leaves it to the next one. A leaf that no root names in the end, because it was merged at once or because
the table went to another version meanwhile, is left to whoever ends the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifests import encode_leaf, extension
from icefloe.model.entries import put
from icefloe.tree.store import ManifestStore


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

    def write_leaves(self, store: ManifestStore, rows: pa.Table, *, delete: bool) -> tuple[NewLeaf, ...]:
        """One leaf per partition spec of the rows."""
        specs = pc.unique(rows["partition_spec_id"]).to_pylist()
        parts = ((s, rows.filter(pc.equal(rows["partition_spec_id"], s)) if len(specs) > 1 else rows) for s in specs)
        return tuple(self._write_leaf(store, part, delete=delete, spec_id=spec_id) for spec_id, part in parts)

    def reuse_or_write(self, store: ManifestStore, key: str, rows: pa.Table, *, delete: bool) -> tuple[NewLeaf, ...]:
        """The leaves written under ``key`` by an earlier attempt, or new ones; each version writes its own."""
        key = f"{key} {store.context.format_version}"
        if key not in self._reusable:
            leaves = self.write_leaves(store, rows, delete=delete)
            self._reusable[key] = leaves
            del self._of_attempt[-len(leaves) :]
        return self._reusable[key]

    def _write_leaf(self, store: ManifestStore, rows: pa.Table, *, delete: bool, spec_id: int) -> NewLeaf:
        data = encode_leaf(rows, store.context, delete=delete, spec_id=spec_id)
        location = f"{self.folder}/{self._uuid}-m{next(self._numbers)}.{extension(store.context)}"
        self.write(store, {location: data})
        self._leaves.add(location)
        stored = put(rows, "ordinal", pa.array(np.arange(rows.num_rows), pa.int64()))
        store.remember(location, stored)
        return NewLeaf(location=location, size=len(data), delete=delete, spec_id=spec_id, rows=stored)
