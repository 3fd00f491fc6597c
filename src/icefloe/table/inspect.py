"""Metadata tables through the public API: ``t.inspect.files()`` and others."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa

from icefloe.commit.base import Base
from icefloe.engines.choose import engine_for
from icefloe.errors import InputError
from icefloe.inspect.metadata_tables.table_shape import MetadataTable
from icefloe.inspect.metadata_tables.tables import METADATA_TABLES
from icefloe.model.metadata.snapshots import Snapshot
from icefloe.scan.select import select_snapshot


class Inspect:
    """The metadata tables of Apache Iceberg for one state of a table: one method for each.

    A method returns a pyarrow Table, or with a Spark session in ``spark`` a DataFrame with the same columns. Tables
    that depend on a snapshot are those of the current one, unless ``snapshot``, ``branch``, ``tag`` or ``timestamp``
    choose another.

    >>> import icefloe, pyarrow as pa
    >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.inspect", schema="id bigint")
    >>> first = t.append(pa.table({"id": [1]}))
    >>> second = t.append(pa.table({"id": [2]}))
    >>> t.inspect.files().num_rows, t.inspect.files(snapshot=first.snapshot_id).num_rows
    (2, 1)
    """

    def __init__(self, base: Base, snapshot: Snapshot | None) -> None:
        self._base = base
        self._snapshot = snapshot

    def schema(self, name: str) -> pa.Schema:
        """The columns of a metadata table; no file is read."""
        return _table(name).schema(self._base)

    def rows(self, name: str) -> pa.Table:
        """The rows of a metadata table by its name."""
        return _table(name).rows(self._base, self._snapshot)

    def _static(self, name: str, spark: Any) -> Any:
        return engine_for(spark).frame(self.rows(name))

    def _at(
        self,
        name: str,
        snapshot: int | None,
        branch: str | None,
        tag: str | None,
        timestamp: datetime | str | None,
        spark: Any,
    ) -> Any:
        if snapshot is None and branch is None and tag is None and timestamp is None:
            return self._static(name, spark)
        chosen = select_snapshot(self._base.metadata, snapshot=snapshot, branch=branch, tag=tag, timestamp=timestamp)
        return Inspect(self._base, chosen)._static(name, spark)

    def history(self, *, spark: Any = None) -> Any:
        """Which snapshots were current, and from when on."""
        return self._static("history", spark)

    def snapshots(self, *, spark: Any = None) -> Any:
        """The snapshots.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.snapshots", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> t.inspect.snapshots()["operation"].to_pylist()
        ['append']
        """
        return self._static("snapshots", spark)

    def refs(self, *, spark: Any = None) -> Any:
        """The branches and tags."""
        return self._static("refs", spark)

    def metadata_log_entries(self, *, spark: Any = None) -> Any:
        """The metadata files, with the snapshot that was current when each was written."""
        return self._static("metadata_log_entries", spark)

    def entries(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The manifest entries, with those of removed files: status 0 existing, 1 added, 2 removed."""
        return self._at("entries", snapshot, branch, tag, timestamp, spark)

    def files(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The live files: data files (content 0), position deletes (1) and equality deletes (2).

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.files", schema="id bigint")
        >>> result = t.append(pa.table({"id": [3, 5]}))
        >>> file = t.inspect.files().to_pylist()[0]
        >>> file["record_count"], file["readable_metrics"]["id"]["upper_bound"]
        (2, 5)
        """
        return self._at("files", snapshot, branch, tag, timestamp, spark)

    def data_files(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The live data files."""
        return self._at("data_files", snapshot, branch, tag, timestamp, spark)

    def delete_files(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The live delete files and deletion vectors."""
        return self._at("delete_files", snapshot, branch, tag, timestamp, spark)

    def manifests(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The manifests, with counts of their files and the range of their partitions."""
        return self._at("manifests", snapshot, branch, tag, timestamp, spark)

    def partitions(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The partitions, with counts of their rows and files.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.partitions", schema="id bigint, city string", partition_by=["city"])
        >>> result = t.append(pa.table({"id": [1, 2, 3], "city": ["Oslo", "Rome", "Rome"]}))
        >>> rows = t.inspect.partitions().select(["partition", "record_count"]).to_pylist()
        >>> sorted((row["partition"]["city"], row["record_count"]) for row in rows)
        [('Oslo', 1), ('Rome', 2)]
        """
        return self._at("partitions", snapshot, branch, tag, timestamp, spark)

    def position_deletes(
        self,
        *,
        snapshot: int | None = None,
        branch: str | None = None,
        tag: str | None = None,
        timestamp: datetime | str | None = None,
        spark: Any = None,
    ) -> Any:
        """The deleted positions of data files, from position delete files and deletion vectors.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table(
        ...     "docs.position_deletes", schema="id bigint", format_version=3)
        >>> result = t.set_properties({"write.delete.mode": "merge-on-read"})
        >>> result = t.append(pa.table({"id": [1, 2, 3]}))
        >>> result = t.delete("id = 2")
        >>> t.inspect.position_deletes()["pos"].to_pylist()
        [1]
        """
        return self._at("position_deletes", snapshot, branch, tag, timestamp, spark)

    def all_files(self, *, spark: Any = None) -> Any:
        """The live files of all snapshots; a file has a row for each manifest that lists it."""
        return self._static("all_files", spark)

    def all_data_files(self, *, spark: Any = None) -> Any:
        """The live data files of all snapshots; a file has a row for each manifest that lists it."""
        return self._static("all_data_files", spark)

    def all_delete_files(self, *, spark: Any = None) -> Any:
        """The live delete files of all snapshots; a file has a row for each manifest that lists it."""
        return self._static("all_delete_files", spark)

    def all_entries(self, *, spark: Any = None) -> Any:
        """The entries of the manifests of all snapshots."""
        return self._static("all_entries", spark)

    def all_manifests(self, *, spark: Any = None) -> Any:
        """The manifests of all snapshots, with a row for each snapshot that has the manifest."""
        return self._static("all_manifests", spark)


def _table(name: str) -> MetadataTable:
    if name not in METADATA_TABLES:
        raise InputError(f"there is no metadata table {name!r}; there are: {', '.join(METADATA_TABLES)}", table=name)
    return METADATA_TABLES[name]
