"""The table that users hold: every method delegates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Self

from icefloe.commit.operations.cherry_pick import CherryPick
from icefloe.commit.operations.property_updates import SetProperties, Upgrade
from icefloe.commit.operations.ref_updates import CURRENT, FastForward, RemoveRef, SetCurrentSnapshot, SetRef
from icefloe.commit.operations.remove_files import RemoveFiles
from icefloe.commit.operations.schema_updates import ChangePartitioning, ChangeSchema, SetSortOrder
from icefloe.commit.result import CommitResult
from icefloe.engines.choose import engine_for
from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr
from icefloe.inspect.metadata_tables.log_tables import HistoryEntry, history_of
from icefloe.maintenance.erase import ErasePlan, plan_erasure
from icefloe.maintenance.maintain import BudgetLike, MaintainPlan, plan_maintenance
from icefloe.model.evolution.schema_update import update_of
from icefloe.model.metadata.snapshots import MAIN, Ref, Snapshot
from icefloe.model.partition.spec_evolution import PartitionUpdate
from icefloe.model.text.partition_text import sort_order
from icefloe.model.text.text_checks import listed, property_names
from icefloe.scan.select import select_snapshot
from icefloe.table.edits import PartitionEdit, SchemaEdit
from icefloe.table.inspect import Inspect
from icefloe.table.maintained_table import MaintainedTable
from icefloe.table.row_changes import RowChanges
from icefloe.table.scan import Scan
from icefloe.table.snapshot_changes import ChangeFeeds
from icefloe.table.table_at import TableAt, table_at
from icefloe.table.transaction import Transaction


class Table(RowChanges, MaintainedTable, ChangeFeeds):
    """A table in a catalog. Each change is one snapshot.

    The object holds one state of the table. Properties and scans read that state and never ask the catalog, so they
    agree with each other. ``refresh`` loads the newest state. A change through this object starts from the newest
    state, and the object then holds the state after the change, which includes earlier commits by others.

    >>> import icefloe, tempfile, pyarrow as pa
    >>> folder = tempfile.mkdtemp()
    >>> cat = icefloe.catalog("demo", uri=f"sqlite:///{folder}/cat.db", warehouse=f"file://{folder}/wh")
    >>> t = cat.create_table("db.orders", schema="id bigint, note string", format_version=4)
    >>> t.append(pa.table({"id": [1, 2], "note": ["a", "b"]})).rows_added
    2
    >>> result = t.upsert(pa.table({"id": [2, 3], "note": ["B", "c"]}), on=["id"])
    >>> result.rows_added, result.rows_deleted, result.metadata_files_written
    (2, 1, 1)
    >>> t.delete("note = 'a'").rows_deleted
    1
    >>> sorted(t.scan(columns=["note"]).to_arrow()["note"].to_pylist())
    ['B', 'c']
    """

    def __repr__(self) -> str:
        metadata = self.metadata
        head = metadata.current_snapshot_id
        return f"Table({self.name}, format version {metadata.format_version}, snapshot {head}, at {metadata.location})"

    def refresh(self) -> Self:
        """Load the newest state from the catalog, with what others have committed, and return this table.

        >>> import icefloe, pyarrow as pa
        >>> cat = icefloe.catalog("docs", uri="memory://")
        >>> t = cat.create_table("docs.refresh", schema="id bigint")
        >>> result = cat.load_table("docs.refresh").append(pa.table({"id": [1]}))
        >>> t.scan().count(), t.refresh().scan().count()
        (0, 1)
        """
        self._pointer.load()
        return self

    @property
    def format_version(self) -> int:
        """The format version: 1 to 4."""
        return self.metadata.format_version

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties."""
        return self.metadata.properties

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """All snapshots, oldest first."""
        return tuple(self.metadata.snapshots)

    @property
    def refs(self) -> Mapping[str, Ref]:
        """The branches and tags by name, with their snapshots; ``main`` is one of them.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.refs", schema="id bigint")
        >>> first = t.append(pa.table({"id": [1]}))
        >>> result = t.tag("v1")
        >>> {name: ref.type for name, ref in t.refs.items()}, t.refs["v1"].snapshot_id == first.snapshot_id
        ({'main': 'branch', 'v1': 'tag'}, True)
        """
        return self.metadata.refs

    @property
    def history(self) -> tuple[HistoryEntry, ...]:
        """Which snapshots were current, and from when on, oldest first; rolled-back ones are not current ancestors.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.history", schema="id bigint")
        >>> first, second = (t.append(pa.table({"id": [n]})) for n in (1, 2))
        >>> result = t.rollback(snapshot=first.snapshot_id)
        >>> [entry.is_current_ancestor for entry in t.history], t.history[1].parent_id == first.snapshot_id
        ([True, False, True], True)
        """
        return history_of(self.metadata)

    @property
    def inspect(self) -> Inspect:
        """The metadata tables of the state that this object holds.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.inspect_property", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> t.inspect.refs()["name"].to_pylist()
        ['main']
        """
        base = self._pointer.held()
        return Inspect(base, base.metadata.current_snapshot)

    def transaction(self, *, summary: Mapping[str, str] | None = None, one_snapshot: bool = False) -> Transaction:
        """Several operations as one commit: all of them or none; ``summary`` has keys for their snapshots' summaries.

        They are one snapshot where they can be. With ``one_snapshot`` an operation that needs another one is an error.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.transaction", schema="id bigint")
        >>> with t.transaction() as tx:
        ...     tx.append(pa.table({"id": [1, 2, 3]}))
        ...     tx.delete("id = 2")
        >>> t.scan().count()
        2
        """
        return Transaction(self._pointer, self._env, summary, one_snapshot=one_snapshot, settings=self._settings)

    def remove_files(self, locations: Iterable[str]) -> CommitResult:
        """Remove data files from the table by location; they are deleted when the snapshots that contain them expire.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.remove_files", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1, 2, 3]}))
        >>> t.remove_files(t.scan().plan().tasks["location"].to_pylist()).files_removed
        1
        """
        return self._commit(RemoveFiles(locations=listed(locations, "locations")))

    def branch(self, name: str, *, snapshot: int | None = None) -> CommitResult:
        """Create a branch at a snapshot, by default at that of main; without one the branch gets an empty snapshot.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.branch", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> result = t.branch("dev")
        >>> result = t.append(pa.table({"id": [2]}), branch="dev")
        >>> t.scan().count(), t.at(branch="dev").scan().count()
        (1, 2)
        """
        return self._set_ref(name, "branch", snapshot)

    def tag(self, name: str, *, snapshot: int | None = None) -> CommitResult:
        """Tag a snapshot, by default the current one, with a name.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.tag", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> result = t.tag("v1")
        >>> result = t.append(pa.table({"id": [2]}))
        >>> t.at(tag="v1").scan().count()
        1
        """
        return self._set_ref(name, "tag", snapshot)

    def remove_ref(self, name: str) -> CommitResult:
        """Remove a branch or tag."""
        return self._commit(RemoveRef(ref_name=name))

    def publish(self, branch: str) -> CommitResult:
        """Move main to the head of a branch that was created from it.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.publish", schema="id bigint")
        >>> result = t.branch("dev")
        >>> result = t.append(pa.table({"id": [1]}), branch="dev")
        >>> result = t.publish("dev")
        >>> t.scan().count()
        1
        """
        return self.fast_forward(MAIN, to=branch)

    def fast_forward(self, branch: str, *, to: str) -> CommitResult:
        """Move a branch forward to the snapshot of another branch or tag, which must have all snapshots of the branch.

        A branch that does not exist is created there.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.fast_forward", schema="id bigint")
        >>> result = t.append(pa.table({"id": [1]}))
        >>> result = t.branch("test")
        >>> result = t.append(pa.table({"id": [2]}), branch="test")
        >>> result = t.fast_forward("main", to="test")
        >>> t.scan().count()
        2
        """
        return self._commit(FastForward(branch=branch, to=to))

    def cherry_pick(self, snapshot: int) -> CommitResult:
        """Apply the changes of a staged snapshot to main.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.cherry_pick", schema="id bigint")
        >>> staged = t.append(pa.table({"id": [1]}), wap_id="load-7")
        >>> t.scan().count()
        0
        >>> result = t.cherry_pick(staged.snapshot_id)
        >>> t.scan().count()
        1
        """
        return self._commit(CherryPick(snapshot_id=snapshot))

    def rollback(self, *, snapshot: int | None = None, timestamp: datetime | str | None = None) -> CommitResult:
        """Set main to one of its earlier snapshots, by id or by the time at which it was current.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.rollback", schema="id bigint")
        >>> first = t.append(pa.table({"id": [1]}))
        >>> second = t.append(pa.table({"id": [2]}))
        >>> result = t.rollback(snapshot=first.snapshot_id)
        >>> t.scan().count()
        1
        """
        chosen = select_snapshot(self._pointer.load().metadata, snapshot=snapshot, timestamp=timestamp)
        if chosen is None or (snapshot is None and timestamp is None):
            raise InputError("rollback: say where to, by snapshot= or timestamp=")
        return self._commit(SetCurrentSnapshot(snapshot_id=chosen.snapshot_id, rollback=True))

    def set_current_snapshot(self, snapshot: int | None = None, *, ref: str | None = None) -> CommitResult:
        """Set main to any snapshot of the table, or to that of a branch or tag, in its history or not.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.set_current", schema="id bigint")
        >>> first = t.append(pa.table({"id": [1]}))
        >>> second = t.append(pa.table({"id": [2]}))
        >>> result = t.rollback(snapshot=first.snapshot_id)
        >>> result = t.set_current_snapshot(second.snapshot_id)
        >>> t.scan().count()
        2
        """
        if (snapshot is None) == (ref is None):
            raise InputError("set_current_snapshot: give either a snapshot id or ref=, the name of a branch or tag")
        return self._commit(SetCurrentSnapshot(snapshot_id=CURRENT if snapshot is None else snapshot, ref_name=ref))

    def _set_ref(self, name: str, kind: Literal["branch", "tag"], snapshot: int | None) -> CommitResult:
        ref = Ref(snapshot_id=CURRENT if snapshot is None else snapshot, type=kind)
        return self._commit(SetRef(ref_name=name, ref=ref, fresh=True))

    def update_schema(self) -> SchemaEdit:
        """Change the columns in a ``with`` block: ``s.add_column("x", "int")``, ``s.rename_column("note", "memo")``.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.columns", schema="id int, note string")
        >>> with t.update_schema() as edit:
        ...     edit.add_column("age", "int")
        ...     edit.rename_column("note", "memo")
        >>> [column.name for column in t.schema.fields]
        ['id', 'memo', 'age']
        """
        metadata = self._pointer.load().metadata
        return SchemaEdit(
            update_of(metadata),
            lambda update: self._commit(ChangeSchema(steps=update.steps, read=metadata.current_schema_id)),
        )

    def update_partitioning(self) -> PartitionEdit:
        """Change the partitioning in a ``with`` block: ``p.add("month(ts)")``, ``p.remove("ts_day")``.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.update_partitioning", schema="id bigint")
        >>> with t.update_partitioning() as edit:
        ...     edit.add("bucket(16, id)")
        >>> [field.name for field in t.spec.fields]
        ['id_bucket_16']
        """
        metadata = self._pointer.load().metadata
        return PartitionEdit(
            PartitionUpdate(metadata=metadata),
            lambda update: self._commit(ChangePartitioning(update=update)),
        )

    def set_sort_order(self, *keys: str) -> CommitResult:
        """Sort new files by these keys, such as ``"ts desc"`` and ``"bucket(16, id)"``; none means unsorted.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.set_sort_order", schema="id bigint")
        >>> t.set_sort_order("id desc").operation
        'set sort order'
        """
        return self._commit(SetSortOrder(order=sort_order(keys, self._pointer.load().metadata.schema)))

    def set_properties(self, updates: Mapping[str, str], remove: Iterable[str] = ()) -> CommitResult:
        """Set and remove table properties; setting ``format-version`` upgrades the table.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.set_properties", schema="id bigint")
        >>> result = t.set_properties({"owner": "me", "commit.retry.num-retries": "5"}, remove=["absent"])
        >>> t.properties["owner"]
        'me'
        """
        return self._commit(SetProperties(updates=dict(updates), removals=property_names(remove)))

    def upgrade(self, version: int) -> CommitResult:
        """Upgrade to a later format version; no file is rewritten.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.upgrade", schema="id bigint")
        >>> result = t.upgrade(3)
        >>> t.format_version
        3
        """
        return self._commit(Upgrade(version=version))

    def maintain(self, budget: BudgetLike = None, *, orphans: bool = False, spark: Any = None) -> MaintainPlan:
        """Plan what the health of the table calls for: rewrite deletes, compact, rewrite manifests, expire.

        ``budget`` limits one run: ``{"bytes": 10**9, "seconds": 60}``. With ``orphans`` files that nothing references
        are removed too. With a Spark session the steps run on Spark. Safe to run from a scheduler on every table:
        ``execute()`` takes each step by itself, continues after a conflict, and reports what it did and what it left.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.maintain", schema="id bigint")
        >>> for number in range(6):
        ...     result = t.append(pa.table({"id": [number]}))
        >>> plan = t.maintain()
        >>> [step.name for step in plan.steps]
        ['compact', 'rewrite_manifests']
        >>> plan.execute().left, t.scan().plan().files
        ({}, 1)
        """
        return plan_maintenance(self, budget=budget, orphans=orphans, spark=spark)

    def erase(self, where: str | Expr, *, spark: Any = None) -> ErasePlan:
        """Plan to erase rows for good: from every branch, from data files, and from older snapshots.

        The plan reads the data files of all snapshots that may contain such rows. ``execute()`` deletes the rows,
        rewrites files that still contain them, lets the snapshots expire that reach them, deletes their files, and
        reads again what is left. The report says which files went, and what blocks the rest, such as a tag. With a
        Spark session all of this runs on Spark, and ``where`` is Spark SQL.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.erase", schema="id bigint, name string")
        >>> result = t.append(pa.table({"id": [1, 2], "name": ["Ada", "Bob"]}))
        >>> result = t.append(pa.table({"id": [3], "name": ["Cy"]}))
        >>> report = t.erase("name = 'Bob'").execute()
        >>> report.complete, report.rows_deleted, report.snapshots_expired, t.scan().count()
        (True, 1, 3, 2)
        """
        return plan_erasure(self, self._pointer, where, engine_for(spark), self._env, spark)

    def scan(self, where: str | Expr | None = None, columns: Iterable[str] | None = None) -> Scan:
        """Read the current snapshot: the rows that match a filter, with all columns or those in ``columns``.

        A field inside a struct is named by its path. The struct then has only the fields that are named.

        >>> import icefloe, pyarrow as pa
        >>> t = icefloe.catalog("docs", uri="memory://").create_table("docs.scan", schema="s struct<x: int, y: int>")
        >>> result = t.append(pa.table({"s": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, None]}))
        >>> t.scan("s.y > 2 or s is null", columns=["s.x"]).to_arrow().to_pylist()
        [{'s': {'x': 3}}, {'s': None}]
        """
        return self.at().scan(where, columns)

    def at(
        self,
        *,
        snapshot: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
        timestamp: datetime | str | None = None,
    ) -> TableAt:
        """The table as it was at a snapshot, tag, branch or time, for reading.

        A branch has the current columns; snapshots, tags and times have the columns of their snapshot.
        """
        return table_at(self._pointer.held(), snapshot=snapshot, tag=tag, branch=branch, timestamp=timestamp)
