"""Records which manifests an operation opens (V4 proposal)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefloe.tree.store import LeafRequest, ManifestStore


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedManifests:
    """How many different manifests were opened; one from the cache counts as well."""

    roots: int = 0  # root manifests, or manifest lists of versions 1 to 3
    leaves: int = 0

    @property
    def total(self) -> int:
        """Roots and leaves together."""
        return self.roots + self.leaves


class RecordingStore(ManifestStore):
    """The manifests of a table, with a record of those that were opened."""

    def __init__(self, store: ManifestStore) -> None:
        super().__init__(store.io, store.context, store.cache, store.disk)
        self._roots: set[str] = set()
        self._leaves: set[str] = set()

    @property
    def opened(self) -> OpenedManifests:
        """What was opened until now."""
        return OpenedManifests(roots=len(self._roots), leaves=len(self._leaves))

    def root(self, location: str) -> pa.Table:
        """All rows of a root, as stored."""
        self._roots.add(location)
        return super().root(location)

    def leaves(self, requests: Sequence[LeafRequest]) -> Iterator[pa.Table]:
        """All rows of several leaves in order."""
        self._leaves.update(request.location for request in requests)
        return super().leaves(requests)

    def may_contain(self, requests: Sequence[LeafRequest], column: str, names: pa.Array) -> Iterator[bool]:
        """Whether each leaf, in order, may have one of these names in a column of locations."""
        for request, answer in zip(requests, super().may_contain(requests, column, names), strict=True):
            self._leaves.add(request.location)
            yield answer
