"""The base class of updates that change table metadata alone (spec: Table Metadata).

Most of them are valid on any base. Changes of the schema or the partitioning were made for the schema or spec that
their author read; if another commit has replaced it, they are refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from icefloe.commit.draft import Draft, Work
from icefloe.commit.stage import commit_timestamp
from icefloe.model.metadata.table_metadata import TableMetadata


class MetadataUpdate(ABC):
    """A change of table metadata that writes no files of its own."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What it does."""

    @property
    def files(self) -> tuple[str, ...]:
        """It wrote none."""
        return ()

    @abstractmethod
    def change(self, metadata: TableMetadata, moment: int, work: Work) -> TableMetadata:
        """The metadata after the change, which happens at ``moment``."""

    def apply(self, draft: Draft, work: Work) -> Draft:
        """The draft with the change."""
        return draft.with_metadata(self.change(draft.metadata, commit_timestamp(draft, work), work))
