"""Which files are inside a table's location, and whether a file may be another one (spec: File System Operations).

Only files inside the location are deleted. Two locations can be one file: by another scheme or host, by ``..``
segments, and on a local disk by a linked folder. So a file to delete is compared with all files that stay; where that
is not decided, nothing is deleted.
"""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.table_location import is_inside
from icefloe.engines.file_sets import Unreferenced, parent_folders
from icefloe.errors import UnsupportedError
from icefloe.io.local import local_path
from icefloe.model.columns import one_array
from icefloe.model.location_columns import undecided
from icefloe.model.locations import FILE, S3, parse_location

_NOT_PLAIN = r"(?i)/(\.|%2e){1,2}(/|$)|//.*//|/$|\x00"


def inside_mask(locations: pa.Array, folder: str) -> pa.Array:
    """Which locations are in the folder; those with its prefix and without dot segments are accepted unparsed.

    A file that is reached through a linked folder is not inside: it is elsewhere, or has another name.
    """
    if is_root(folder):
        return pa.repeat(False, len(locations))  # never a whole disk or bucket
    plain = pc.and_(
        pc.starts_with(locations, folder.rstrip("/") + "/"),
        pc.invert(pc.match_substring_regex(locations, _NOT_PLAIN)),
    )
    others = [
        location
        for location in locations.filter(pc.invert(plain)).to_pylist()
        if is_inside(folder, location, same_schemes=S3)
    ]
    inside = pc.or_(plain, pc.is_in(locations, value_set=pa.array(others, pa.string())))
    return pc.and_(inside, _unlinked(locations, folder))


def is_root(folder: str) -> bool:
    """Whether a folder is a whole disk or bucket."""
    return all(segment == "" for segment in parse_location(folder).segments)


def check_no_alias(unreferenced: Unreferenced, table_location: str) -> None:
    """UnsupportedError if one of the files may be a file that is kept."""
    to_delete = one_array(unreferenced.files["location"])
    to_delete = to_delete.filter(inside_mask(to_delete, table_location))  # others are never deleted
    if len(to_delete) == 0:
        return
    pair = undecided(unreferenced.similar, to_delete, table_location)
    if pair is not None:
        raise UnsupportedError(
            f"table {table_location}: its metadata references {pair[0]}, which may be the unreferenced file {pair[1]}"
            " under another scheme, host or path. Nothing was deleted. Register the table with the location that its"
            " metadata states, or rewrite its manifests and expire older snapshots",
            location=pair[1],
        )
    linked = _linked_inside(unreferenced.folders, table_location)
    if linked is not None:
        raise UnsupportedError(
            f"table {table_location}: its metadata references {linked}, in a linked folder that leads to another folder"
            " of the table. A file to delete may be the same file, so nothing was deleted. Remove the link",
            location=linked,
        )


def _unlinked(locations: pa.Array, folder: str) -> pa.Array:
    """Which files of a folder are reached without a link below it; each parent folder is resolved once.

    Locations that are not inside the folder are not.
    """
    if parse_location(folder).scheme != FILE:
        return pa.repeat(True, len(locations))
    parents = parent_folders(locations)
    plain = [parent for parent in pc.unique(parents).to_pylist() if _real(parent, folder) == _expected(parent, folder)]
    return pc.is_in(parents, value_set=pa.array(plain, pa.string()))


def _linked_inside(parents: pa.Array, folder: str) -> str | None:
    """One of the folders that is in the folder and is reached by a link which leads back into it."""
    if parse_location(folder).scheme != FILE:
        return None
    root = os.path.realpath(local_path(folder))
    for parent in parents.to_pylist():
        real = _real(parent, folder)
        if real is not None and real != _expected(parent, folder) and f"{real}/".startswith(f"{root}/"):
            return str(parent)
    return None


def _real(parent: str, folder: str) -> str | None:
    """The real path of a folder inside another one, or of that one; none for others."""
    if parent.rstrip("/") != folder.rstrip("/") and not is_inside(folder, parent):
        return None
    return os.path.realpath(local_path(parent))


def _expected(parent: str, folder: str) -> str | None:
    """The real path that a folder has if no link is below the outer one."""
    if parent.rstrip("/") != folder.rstrip("/") and not is_inside(folder, parent):
        return ""
    inner = os.path.relpath(local_path(parent), local_path(folder))
    return os.path.normpath(os.path.join(os.path.realpath(local_path(folder)), inner))
