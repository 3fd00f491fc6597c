"""New locations of the files of a table that is relocated, as columns (V4 proposal: relative locations).

A file inside the table keeps its path relative to the table. A file that was rewritten for the new location, such as a
manifest, has a name and a size of its own; it is looked up by its old path relative to the table.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.model.columns import Column, one_array
from icefloe.model.location_columns import canonical, inner_paths

REWRITTEN = pa.schema(
    [
        pa.field("inner", pa.string()),  # path relative to the old location
        pa.field("location", pa.string()),  # of the rewritten file
        pa.field("bytes", pa.int64()),
        pa.field("lower_path", pa.string()),  # bounds of file_path in a position delete file
        pa.field("upper_path", pa.string()),
    ]
)

_ABSOLUTE = r"^(/|[A-Za-z][A-Za-z0-9+.\-]*:)"
_DOTS = r"(^|/)(\.|%2[eE]){1,2}(/|$)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The old and the new location of a table, its rewritten files, and files outside that stay where they are.

    >>> moves = Moves(old="file:///wh/t", new="s3://b/t", kept=pa.array(["/landing/a"]))
    >>> moves.moved(pa.array(["/wh/t/data/a", "file:/landing/a", None])).to_pylist()
    ['s3://b/t/data/a', 'file:/landing/a', None]
    """

    old: str
    new: str
    rewritten: pa.Table = field(default_factory=REWRITTEN.empty_table)
    kept: pa.Array = field(default_factory=partial(pa.array, [], pa.string()))  # in canonical form

    def moved(self, locations: Column) -> pa.Array:
        """The new location of each file; unchanged if it is not inside the table, or stays."""
        texts = one_array(locations)
        if texts.null_count == len(texts):
            return texts
        inner = self.inner(texts)
        places = pc.binary_join_element_wise(pa.scalar(self.new), inner, "/")
        named = pc.take(one_array(self.rewritten["location"]), self.place(texts))
        return pc.coalesce(named, places, texts)

    def inner(self, locations: Column) -> pa.Array:
        """The path of each file relative to the table, at the old or the new location; null for files that stay.

        A text that is no absolute location stays too.
        """
        texts = canonical(one_array(locations), None)
        inner = pc.coalesce(*(inner_paths(texts, folder) for folder in (self.old, self.new)))
        stays = pc.or_(
            pc.is_in(texts, value_set=self.kept), pc.fill_null(pc.match_substring_regex(inner, _DOTS), False)
        )
        return pc.if_else(pc.or_(stays, pc.invert(pc.match_substring_regex(texts, _ABSOLUTE))), None, inner)

    def place(self, locations: Column) -> pa.Array:
        """The row of each file in ``rewritten``; null if it was not rewritten."""
        return pc.index_in(self.inner(locations), value_set=one_array(self.rewritten["inner"]), skip_nulls=True)

    def sizes(self, locations: Column, sizes: Column) -> pa.Array:
        """The size of each file, new for those that were rewritten."""
        return pc.coalesce(pc.take(one_array(self.rewritten["bytes"]), self.place(locations)), one_array(sizes))

    def with_rewritten(self, more: pa.Table) -> Moves:
        """The same moves with more rewritten files."""
        return replace(self, rewritten=pa.concat_tables([self.rewritten, more]).combine_chunks())
