"""Plans the relocation of a table: which files are rewritten, which are copied as they are (spec: Table Metadata).

Metadata, manifest lists, manifests, position delete files and the footers of deletion vectors contain absolute
locations in versions 1 to 3, so they are rewritten. Data files, equality deletes and statistics files contain none. In
version 4 manifests name files relative to the table; only those with absolute locations, from before an upgrade, are
rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.codecs.manifest.relocated import at_location, needs_rewrite
from icefloe.commit.base import Base, TablePointer
from icefloe.engines.file_sets import Kind
from icefloe.errors import InputError, UnsupportedError
from icefloe.maintenance.containment import inside_mask
from icefloe.maintenance.reachable import reachable_files
from icefloe.maintenance.relocate.delete_files import PUFFIN, delete_format
from icefloe.maintenance.relocate.run_relocation import COPIES, RelocateResult, Work, execute
from icefloe.maintenance.relocate.target import checked_target
from icefloe.model.columns import one_array
from icefloe.model.entries import MANIFESTS, ContentType, total
from icefloe.model.location_columns import canonical
from icefloe.model.metadata.table_metadata import TableMetadata
from icefloe.model.moved_locations import REWRITTEN, Moves
from icefloe.progress import Progress, silent
from icefloe.tree.root import Leaf, leaves_of, read_root
from icefloe.tree.store import NO_STATISTICS

KeptSnapshots = Literal["all", "current"]
Outside = Literal["refuse", "keep"]

_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RelocatePlan:
    """What a relocation rewrites and copies; ``execute`` does it.

    ``copies`` are the files that are copied as they are, with columns ``source``, ``target`` and ``bytes``. With
    ``copy=False`` another program makes these copies before ``execute``.
    """

    table: str
    former_location: str
    location: str
    copy: bool
    switch: bool
    snapshots: int
    dropped_snapshots: int  # that are not at the new location
    copies: pa.Table
    manifests: int  # rewritten, with manifest lists and roots
    delete_files: int  # rewritten: position delete files, and Puffin files of deletion vectors
    outside: tuple[str, ...]  # files that stay outside
    _work: Work = field(compare=False)

    def execute(self, progress: Progress = silent) -> RelocateResult:
        """Copy and rewrite the files, then switch the catalog entry to the new metadata file.

        ConflictError if another commit landed since the plan was made: plan again; files that were copied already are
        not copied again. The files at the old location stay.
        """
        return execute(self._work, progress)

    @property
    def bytes(self) -> int:
        """The bytes of the files that are copied as they are."""
        return total(self.copies, "bytes")

    def as_dict(self) -> dict[str, object]:
        """Everything that the plan shows, as plain values."""
        return {
            "table": self.table,
            "former_location": self.former_location,
            "location": self.location,
            "copy": self.copy,
            "switch": self.switch,
            "snapshots": self.snapshots,
            "dropped_snapshots": self.dropped_snapshots,
            "metadata_files": 1,
            "manifests": self.manifests,
            "delete_files": self.delete_files,
            "copies": self.copies.num_rows,
            "bytes": self.bytes,
            "outside": list(self.outside),
        }

    def __repr__(self) -> str:
        left = "" if self.dropped_snapshots == 0 else f", {self.dropped_snapshots} older snapshots are left behind"
        copied = f"{self.copies.num_rows} files as they are ({self.bytes} bytes)"
        lines = [
            f"relocate {self.table} from {self.former_location} to {self.location}: {self.snapshots} snapshots{left}",
            f"rewrite 1 metadata file, {self.manifests} manifests and manifest lists, {self.delete_files} delete files",
            f"copy {copied}" if self.copy else f"expect copies of {copied}; plan.copies lists them",
        ]
        if len(self.outside) > 0:
            lines.append(f"leave {len(self.outside)} files outside the table where they are, first {self.outside[0]}")
        switched = "switch the catalog entry to the new metadata" if self.switch else "do not switch the catalog entry"
        return "\n".join([*lines, f"{switched}; nothing at the old location is changed or deleted"])


def plan_relocation(
    table: TablePointer,
    new_location: str,
    *,
    copy: bool = True,
    snapshots: KeptSnapshots = "all",
    outside: Outside = "refuse",
    switch: bool = True,
) -> RelocatePlan:
    """Plan a relocation on the newest state of a table; nothing is changed."""
    base = table.load()
    if snapshots not in ("all", "current") or outside not in ("refuse", "keep"):
        raise InputError(f"snapshots={snapshots!r}, outside={outside!r}: give 'all' or 'current', 'refuse' or 'keep'")
    new = checked_target(table, base, new_location, switch=switch)
    kept = base if snapshots == "all" else replace(base, metadata=_heads(base.metadata))
    _check_known(table, kept.metadata)
    files = reachable_files(kept)
    files = files.filter(pc.not_equal(files["kind"], Kind.METADATA.value))
    inside = inside_mask(one_array(files["location"]), base.metadata.location)
    elsewhere, files = files.filter(pc.invert(inside)), files.filter(inside)
    _check_outside(table, elsewhere, outside)
    moves = Moves(old=base.metadata.location, new=new, kept=canonical(elsewhere["location"], base.metadata.location))
    deletes = _rewritten_deletes(kept, files)
    leaves, roots = _rewritten_manifests(kept, moves, deletes)
    work = Work(
        table=table,
        base=kept,
        moves=moves,
        copies=_copies(files, moves, [*deletes, *(leaf.location for leaf in leaves), *roots]),
        deletes=deletes,
        leaves=leaves,
        roots=roots,
        copy=copy,
        switch=switch,
        expected=base.expected,
    )
    return RelocatePlan(
        table=str(table),
        former_location=base.metadata.location,
        location=new,
        copy=copy,
        switch=switch,
        snapshots=len(kept.metadata.snapshots),
        dropped_snapshots=len(base.metadata.snapshots) - len(kept.metadata.snapshots),
        copies=work.copies,
        manifests=len(leaves) + len(roots),
        delete_files=len(deletes),
        outside=tuple(elsewhere["location"].to_pylist()),
        _work=work,
    )


def _heads(metadata: TableMetadata) -> TableMetadata:
    """The table with the snapshots that branches and tags name."""
    heads = {metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())}
    return metadata.without_snapshots({s.snapshot_id for s in metadata.snapshots} - heads)


def _check_known(table: TablePointer, metadata: TableMetadata) -> None:
    """Refuse what cannot be relocated: encrypted tables, and unknown metadata that contains the old location."""
    keys = [snapshot for snapshot in metadata.snapshots if snapshot.key_id is not None]
    files = [file for file in metadata.statistics if file.key_metadata is not None]
    if len(metadata.encryption_keys) > 0 or len(keys) > 0 or len(files) > 0:
        raise UnsupportedError(
            f"table {table} has encryption keys: encrypted tables are not relocated. Rewrite it without encryption",
            table=str(table),
        )
    unknown = [("metadata", metadata.extra), *((f"snapshot {s.snapshot_id}", s.extra) for s in metadata.snapshots)]
    unknown += [(f"ref {name}", ref.extra) for name, ref in metadata.refs.items()]
    unknown += [(file.statistics_path, file.extra) for file in metadata.statistics_files]
    for where, extra in unknown:
        if metadata.location.encode() in msgspec.json.encode(extra, enc_hook=str):
            raise UnsupportedError(
                f"table {table}: unknown keys of {where} contain its location {metadata.location}, so it is not known"
                f" how to relocate them: {extra!r:.200}",
                table=str(table),
            )


def _check_outside(table: TablePointer, files: pa.Table, outside: Outside) -> None:
    """Refuse files outside the table unless they may stay there; a file with locations in it can never stay."""
    if files.num_rows == 0:
        return
    deletes = pc.equal(files["content"], int(ContentType.POSITION_DELETES))
    with_locations = pc.or_(pc.equal(files["kind"], Kind.MANIFEST.value), pc.fill_null(deletes, False))
    named = files.filter(with_locations)
    if outside == "refuse" or named.num_rows > 0:
        first = (named if named.num_rows > 0 else files)["location"][0].as_py()
        remedy = (
            "It contains locations of files in the table; rewrite the manifests or deletes, expire older snapshots"
            if named.num_rows > 0
            else 'Pass outside="keep" to leave such files where they are, or rewrite them into the table first'
        )
        raise UnsupportedError(
            f"table {table}: {files.num_rows} of its files are outside its location, first {first}. {remedy}",
            table=str(table),
            location=first,
        )


def _rewritten_deletes(base: Base, files: pa.Table) -> dict[str, str]:
    """The delete files to rewrite, with their formats. V4 readers ignore the footers of Puffin files (decision 021)."""
    mask = pc.and_(
        pc.equal(files["kind"], Kind.DELETES.value), pc.equal(files["content"], int(ContentType.POSITION_DELETES))
    )
    locations = files["location"].filter(pc.fill_null(mask, False)).to_pylist()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="icefloe-relocate") as pool:
        look = partial(delete_format, base.store.io, table=base.metadata.location)
        formats = dict(zip(locations, pool.map(look, locations), strict=True))
    if not base.metadata.rules.relative_locations:
        return formats
    return {location: name for location, name in formats.items() if name != PUFFIN}


def _rewritten_manifests(base: Base, moves: Moves, deletes: Iterable[str]) -> tuple[tuple[Leaf, ...], tuple[str, ...]]:
    """The leaves and roots that contain locations which change."""
    store = base.store.with_context(at_location(base.store.context, moves.new))
    leaves: dict[str, Leaf] = {}
    for snapshot in base.metadata.snapshots:
        leaves.update({leaf.location: leaf for leaf in leaves_of(read_root(base.store, snapshot).rows(*MANIFESTS))})
    named = _named(moves, deletes)
    rows = store.leaves([leaf.request(NO_STATISTICS) for leaf in leaves.values()])
    changed = tuple(leaf for leaf, entries in zip(leaves.values(), rows, strict=True) if needs_rewrite(entries, named))
    named = _named(named, [leaf.location for leaf in changed])
    roots = dict.fromkeys(snapshot.root for snapshot in base.metadata.snapshots if snapshot.root is not None)
    return changed, tuple(root for root in roots if needs_rewrite(store.root(root), named))


def _named(moves: Moves, locations: Iterable[str]) -> Moves:
    """Moves in which these files are rewritten; their new names are not known yet."""
    inner = moves.inner(pa.array(list(locations), pa.string()))
    columns = [inner, inner, *(pa.nulls(len(inner), part.type) for part in list(REWRITTEN)[2:])]
    return moves.with_rewritten(pa.Table.from_arrays(columns, schema=REWRITTEN))


def _copies(files: pa.Table, moves: Moves, rewritten: list[str]) -> pa.Table:
    """The files that are copied as they are, each once."""
    files = files.filter(pc.invert(pc.is_in(files["location"], value_set=pa.array(rewritten, pa.string()))))
    columns = [one_array(files["location"]), moves.moved(files["location"]), one_array(files["bytes"])]
    copies = pa.Table.from_arrays(columns, schema=COPIES)
    first = copies.group_by("target", use_threads=False).aggregate([("source", "first"), ("bytes", "max")])
    return first.rename_columns({"source_first": "source", "bytes_max": "bytes"}).select(COPIES.names).cast(COPIES)
