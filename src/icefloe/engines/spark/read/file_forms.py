"""Which routes the files of a snapshot need, found when a DataFrame is made, before any file is planned.

Delete manifests are read only if the snapshot may have equality deletes. Data manifests of small tables are read, for
the formats of their files. A large table has Parquet files only, unless its properties say otherwise. If that is wrong,
a query fails and names ``inspect_files``.
"""

from __future__ import annotations

from dataclasses import dataclass

from icefloe.engines.spark.read import source
from icefloe.engines.spark.read.equality_joins import NO_EQUALITY_DELETES, EqualityDeletes
from icefloe.engines.spark.read.footers import Footers
from icefloe.engines.spark.read.identity_columns import IdentityColumns
from icefloe.engines.work import ScanRequest
from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Bound
from icefloe.formats.parquet.stats import PARQUET
from icefloe.model.entries import ContentType
from icefloe.model.metadata.error_context import Origin
from icefloe.model.metadata.properties import FILE_FORMAT
from icefloe.model.metadata.snapshots import SummaryKey
from icefloe.model.schema.name_mapping import NAME_MAPPING_PROPERTY
from icefloe.scan.plan import all_deletes, known_fields, partition_fields
from icefloe.scan.prune import statistics_keys
from icefloe.scan.routes import Route, is_parquet
from icefloe.scan.tasks import TASK, Plan
from icefloe.tree.root import Root, read_live_leaves

INSPECTED_FILES_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileForms:
    """The routes that the files of a snapshot may need, and its equality deletes that joins apply."""

    routes: frozenset[Route]
    has_deletes: bool
    equality_deletes: EqualityDeletes
    may_lack_ids: bool  # whether the footers of Parquet files must be read


def file_forms(scan: ScanRequest, root: Root, footers: Footers, *, native: bool) -> FileForms:
    """The forms of the files of a scan, as far as metadata shows them; unless ``native``, tasks read all of them."""
    metadata, schema = scan.base.metadata, scan.table_schema
    has_deletes = root.has_deletes
    if not native:
        return FileForms(
            routes=frozenset({Route.TASKS}),
            has_deletes=has_deletes,
            equality_deletes=NO_EQUALITY_DELETES,
            may_lack_ids=False,
        )
    equality_deletes = _equality_deletes(scan, root, footers) if has_deletes else NO_EQUALITY_DELETES
    may_lack_ids = NAME_MAPPING_PROPERTY in metadata.properties or scan.inspect_files
    identity = IdentityColumns(schema, metadata.specs, root.entries["partition_spec_id"], footers)
    by_tasks = may_lack_ids or not equality_deletes.is_complete or not identity.is_certain
    rows = _total(scan, SummaryKey.TOTAL_RECORDS)
    if has_deletes and (rows is None or rows // 8 > source.BITMAP_BYTES_MAX):
        by_tasks = True
    routes = {Route.NATIVE}
    if equality_deletes.files.num_rows > 0:
        routes.add(Route.JOINED)
    if by_tasks or _has_other_formats(scan, root):
        routes.add(Route.TASKS)
    return FileForms(
        routes=frozenset(routes), has_deletes=has_deletes, equality_deletes=equality_deletes, may_lack_ids=may_lack_ids
    )


def _equality_deletes(scan: ScanRequest, root: Root, footers: Footers) -> EqualityDeletes:
    """The equality deletes of a snapshot; its delete manifests are read unless its summary counts none."""
    if _total(scan, SummaryKey.TOTAL_EQUALITY_DELETES) == 0 and not scan.inspect_files:
        return NO_EQUALITY_DELETES
    deletes = all_deletes(scan.base.store, root)
    return EqualityDeletes(deletes, scan.table_schema, scan.base.metadata.specs, footers)


def _has_other_formats(scan: ScanRequest, root: Root) -> bool:
    """Whether a data file is not Parquet, or may not be; the data manifests of small tables are read."""
    if FILE_FORMAT.of(scan.base.metadata.properties) != PARQUET or not is_parquet(root.rows(ContentType.DATA)).all():
        return True
    count = _total(scan, SummaryKey.TOTAL_DATA_FILES)
    if not scan.inspect_files and (count is None or count > INSPECTED_FILES_MAX):
        return False
    metadata, leaves = scan.base.metadata, root.leaves(ContentType.DATA_MANIFEST)
    wanted = statistics_keys(bind(scan.filter, scan.table_schema), partition_fields(metadata))
    return any(not is_parquet(rows).all() for rows in read_live_leaves(scan.base.store, root, leaves, wanted))


def _total(scan: ScanRequest, key: SummaryKey) -> int | None:
    text = "" if scan.snapshot is None else scan.snapshot.summary.get(str(key), "")
    return int(text) if text.isdigit() else None


def empty_plan(scan: ScanRequest, filter_: Bound) -> Plan:
    """The plan of a scan without files: what readers need to know about the table."""
    metadata, snapshot = scan.base.metadata, scan.snapshot
    return Plan(
        tasks=TASK.empty_table(),
        schema=scan.table_schema,
        table_schema=scan.table_schema,
        filter=filter_,
        specs=metadata.specs,
        properties=metadata.properties,
        fields=known_fields(metadata),
        origin=Origin(table=metadata.location, snapshot_id=None if snapshot is None else snapshot.snapshot_id),
    )
