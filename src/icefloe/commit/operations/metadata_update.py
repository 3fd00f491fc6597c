"""The base class of updates that change table metadata alone (spec: Table Metadata).

Most of them are valid on any base. Changes of the schema or the partitioning were made for the schema or spec that
their author read; if another commit has replaced it, they are refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from icefloe.commit.draft import Draft, Work
from icefloe.commit.stage import commit_timestamp, with_manifest_lists
from icefloe.model.metadata.table_metadata import TableMetadata


class MetadataUpdate(ABC):
    """A change of table metadata that writes no data files or manifests.

    Only an upgrade writes manifest lists, for snapshots of version 1 that have none.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """A short description for results and messages."""

    @property
    def files(self) -> tuple[str, ...]:
        """None: it writes no files."""
        return ()

    @property
    def upgrades_to(self) -> int | None:
        """The format version that the table gets, none if that does not change."""
        return None

    @abstractmethod
    def change(self, metadata: TableMetadata, timestamp_ms: int, work: Work) -> TableMetadata:
        """The changed metadata; ``timestamp_ms`` is the time of the change."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the change."""
        version = self.upgrades_to
        if version not in (None, draft.metadata.format_version):
            work.write_roots(draft.store)  # the later version decodes them from their files
            if not draft.metadata.rules.sequence_numbers:
                draft = with_manifest_lists(draft, work)
        return draft.with_metadata(self.change(draft.metadata, commit_timestamp(draft, work), work))
