"""Sets of files of a table as columns in this process (spec: Snapshots)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.engines.file_sets import FileWork, ListedFolder, ReferencedFiles, Unreferenced, parent_folders
from icefloe.io.file_io import FileIO
from icefloe.model.columns import one_array
from icefloe.model.location_columns import is_among
from icefloe.model.locations import FILE, parse_location


class ArrowFileSets:
    """Sets of files that are held in memory."""

    def subtract(self, files: ReferencedFiles, kept: ReferencedFiles, *, check: bool = True) -> Unreferenced:
        """The files of one set that are not in the other."""
        others = kept.read()[0]["location"]
        own, problems = files.read()
        rest = own.filter(pc.invert(is_among(own["location"], others, kept.table_location)))
        return replace(_result(rest, others, kept.table_location, check=check), problems=problems)

    def unreferenced(self, listing: ListedFolder, kept: Callable[[], ReferencedFiles]) -> Unreferenced:
        """The files of a folder that may be orphans and are not kept."""
        listed = listing.read()
        referenced = kept()
        table, others = referenced.table_location, referenced.read()[0]["location"]
        own = listed.filter(listing.may_be_orphan(one_array(listed["location"])))
        rest = own.filter(pc.invert(is_among(own["location"], others, table)))
        missing = others.filter(pc.invert(is_among(others, listed["location"], table)))
        return _result(rest, missing, table, check=True, listed=own.num_rows)

    def work_on(self, work: FileWork, io: FileIO, files: pa.Table) -> Iterator[pa.Table]:
        """The results of work on files, one after the other."""
        return work(io, files)


def _result(
    files: pa.Table, kept: pa.ChunkedArray, table_location: str, *, check: bool, listed: int = 0
) -> Unreferenced:
    files = files.sort_by("location")
    if not check or files.num_rows == 0:
        return Unreferenced(files=files, listed=listed)
    is_local = parse_location(table_location).scheme == FILE
    return Unreferenced(
        files=files,
        similar=one_array(kept),
        folders=pc.unique(parent_folders(one_array(kept if is_local else kept.slice(0, 0)))),
        listed=listed,
    )
