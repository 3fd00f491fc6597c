"""Row ids for the data files of manifests from before a table had row lineage.

A manifest gets a first id, and its files count on from there. That takes the number of rows of every file. Manifest
lists do not say it for certain, because a sum may include unknown numbers, so such manifests are read, once. A manifest
with files whose number of rows is unknown is written again, with the numbers that the files have.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.entries import ContentType, Status, choose, concat, live, of_type, put
from icefloe.tree.leaf_writer import LeafWriter
from icefloe.tree.root import Leaf, leaves_of, mark, read_leaf, read_leaves

_NO_STATISTICS: frozenset[str] = frozenset()


def number_leaves(writer: LeafWriter, rows: pa.Table) -> pa.Table:
    """The rows of a root, in their order, with first row ids for the data manifests that have none."""
    wanting = pc.and_(of_type(rows, ContentType.DATA_MANIFEST), pc.is_null(rows["first_row_id"]))
    if writer.ids.next is None or pc.any(wanting).as_py() is not True:
        return rows
    chosen = rows.filter(wanting)
    leaves = tuple(leaves_of(chosen))
    numbered = []
    for number, (leaf, inside) in enumerate(
        zip(leaves, read_leaves(writer.store, leaves, _NO_STATISTICS), strict=True)
    ):
        counts = choose(inside, live(inside))["record_count"]
        row = chosen.slice(number, 1)
        if counts.null_count > 0:
            numbered += _counted(writer, leaf, row)
        else:
            first = writer.ids.take(pc.sum(counts, min_count=0).as_py())
            numbered.append(put(row, "first_row_id", first))
    return concat([choose(rows, pc.invert(wanting)), *numbered]).sort_by("ordinal")


def _counted(writer: LeafWriter, leaf: Leaf, row: pa.Table) -> list[pa.Table]:
    """The root rows of the leaves that a leaf is written again to, its files with numbers of rows and ids."""
    inside = read_leaf(writer.store, leaf)
    written = writer.settled(mark(choose(inside, live(inside)), Status.EXISTING), delete=False)
    return [put(each, "ordinal", row["ordinal"].combine_chunks()) for each in written]
