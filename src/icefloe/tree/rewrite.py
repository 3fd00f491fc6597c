"""All leaves of a tree written again, sorted by partition and of the size the table asks for (spec: Manifests).

In V4 the leaves of older versions become leaves of V4 so. Those with position delete files, which versions before
deletion vectors wrote, cannot: they stay as they are until their deletes have become vectors (V4 proposal).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import MANIFESTS, ContentType, Status, choose, concat, of_type
from icefloe.model.metadata.version_rules import rules
from icefloe.tree.delete_leaf_affinity import homes_among, laid_out, repointed
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import Root, leaves_of, live_leaves, mark
from icefloe.tree.staging import by_partition


def rewrite_leaves(writer: LeafWriter, root: Root) -> pa.Table:
    """The rows of a root whose leaves are written again; all rows of ``root`` are live."""
    in_v4 = rules(writer.store.context.format_version).root_holds_files
    rows = root.entries
    data = _inside(writer, root, ContentType.DATA_MANIFEST)
    deletes = _inside(writer, root, ContentType.DELETE_MANIFEST)
    staying = [location for location, inside in deletes.items() if in_v4 and _has_position_files(inside)]
    deletes = {location: inside for location, inside in deletes.items() if location not in staying}
    write = writer.settled if in_v4 else writer.merged
    written = [row for part in _by_spec(writer, data) for row in write(part, delete=False)]
    if in_v4:
        written += _affiliated(writer, deletes, written)
    else:
        written += [row for part in _by_spec(writer, deletes) for row in write(part, delete=True)]
    # A deletion vector goes with its leaf, so leaves are told by the location that either names.
    leaf = pc.if_else(of_type(rows, ContentType.MANIFEST_DV), rows["referenced_file"], rows["location"])
    leaves = of_type(rows, *MANIFESTS, ContentType.MANIFEST_DV)
    kept = choose(rows, pc.or_(pc.invert(leaves), pc.is_in(leaf, value_set=pa.array(staying, pa.string()))))
    return repointed(concat([mark(kept, Status.EXISTING), *written]), {})


def _inside(writer: LeafWriter, root: Root, kind: ContentType) -> dict[str, pa.Table]:
    """The live entries of all leaves of a kind, by leaf."""
    leaves = tuple(leaves_of(choose(root.entries, of_type(root.entries, kind))))
    found = live_leaves(writer.store, root, leaves)
    return {leaf.location: mark(rows, Status.EXISTING) for leaf, rows in zip(leaves, found, strict=True)}


def _has_position_files(rows: pa.Table) -> bool:
    files = pc.and_(of_type(rows, ContentType.POSITION_DELETES), pc.is_null(rows["dv_offset"]))
    return pc.any(files).as_py() is True


def _by_spec(writer: LeafWriter, leaves: Mapping[str, pa.Table]) -> Iterator[pa.Table]:
    """The entries of each partition spec, sorted by partition."""
    rows = concat(list(leaves.values()))
    for spec_id in pc.unique(rows["partition_spec_id"]).sort().to_pylist():
        yield by_partition(choose(rows, pc.equal(rows["partition_spec_id"], spec_id)), writer.store)


def _affiliated(writer: LeafWriter, deletes: Mapping[str, pa.Table], data: list[pa.Table]) -> list[pa.Table]:
    """Write delete leaves again, each beside the new data leaf that its vectors belong to; their root rows."""
    if len(deletes) == 0:
        return []
    leaves = tuple(leaves_of(concat(data)))
    files = live_leaves(writer.store, Root(), leaves, frozenset())
    homes = {leaf.location: rows.select(["location"]) for leaf, rows in zip(leaves, files, strict=True)}
    written: list[pa.Table] = []
    for rows in _by_spec(writer, deletes):
        for part, home in laid_out(rows, homes_among(rows, homes)):
            written += writer.settled(part, delete=True, affinity=home)
    return written
