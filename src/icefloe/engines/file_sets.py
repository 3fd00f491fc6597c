"""Sets of files of a table, which engines subtract from each other: what metadata references, what storage lists.

A set of referenced files is known by its leaves, which an engine reads (spec: Snapshots; V4 proposal). So the files of
a large table need not all be in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icefloe.commit.stage import METADATA_FOLDER
from icefloe.errors import IcefloeError
from icefloe.io.file_io import FileInfo, FileIO
from icefloe.model.columns import Column
from icefloe.model.entries import DELETES, MANIFESTS, ContentType, choose, live, of_type
from icefloe.tree.root import Leaf, position_mask, read_leaves
from icefloe.tree.store import NO_STATISTICS, ManifestStore

REFERENCED = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("bytes", pa.int64()),  # null where the metadata does not record it
        pa.field("content", pa.int32()),  # the content type of its entry; null for metadata files and roots
    ]
)
LISTED = pa.schema(
    [
        pa.field("location", pa.string()),
        pa.field("kind", pa.string()),  # a guess by the name
        pa.field("bytes", pa.int64()),
        pa.field("modified_ms", pa.int64()),
    ]
)
FileWork: TypeAlias = Callable[[FileIO, pa.Table], Iterator[pa.Table]]  # on the rows of a table of files; pickled
OTHER = "other"
METADATA_NAME = r"\.metadata\.json(\.gz)?$"
JOURNAL_FOLDER = "deletions"  # in the metadata folder: journals of deletions
_BATCH = 10_000  # listed files that are held as objects
FOLDED_ROWS = 100_000  # named files that are held before those that are there twice are removed
# Files of other programs: a segment that begins with a dot or an underscore and is not a partition such as _day=1.
_HIDDEN = r"/[._][^/=]*(/|$)"
# Of this library, from a writer that died: unfinished files, and those by which it checked the storage.
_TEMPORARY = r"/\.([^/]*\.[0-9a-f]{32}|exclusive-[0-9a-f-]{36})\.tmp$"
_KILLED = r"/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/_temporary/"  # in the folder of a Spark write of this library
_HINT = r"/version-hint\.text$"


class Kind(Enum):
    """The kind of a file of a table."""

    DATA = "data"
    DELETES = "deletes"
    MANIFEST = "manifest"
    METADATA = "metadata"
    STATISTICS = "statistics"


_KINDS = pa.array(sorted(kind.value for kind in Kind), pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafFiles:
    """The files of a leaf, without those at dead positions."""

    leaf: Leaf
    dead: BitMap64

    def files_of(self, entries: pa.Table) -> pa.Table:
        """The files of the leaf's live entries."""
        is_kept = pc.invert(pa.array(position_mask(self.dead, entries.num_rows, self.leaf.location)))
        return entry_files(choose(entries, pc.and_(live(entries), is_kept)))


class DistinctFiles:
    """Collects files of which many are named again and again, such as those of rewritten manifests.

    At most twice the distinct files are held, and some more.
    """

    def __init__(self) -> None:
        self._parts = [REFERENCED.empty_table()]  # the first one has each location once
        self._rows = 0

    def add(self, files: pa.Table) -> None:
        """Add files, in any number."""
        self._parts.append(files)
        self._rows += files.num_rows
        if self._rows > max(FOLDED_ROWS, 2 * self._parts[0].num_rows):
            self.all()

    def all(self) -> pa.Table:
        """Each location once."""
        self._parts = [distinct_files(self._parts)]
        self._rows = self._parts[0].num_rows
        return self._parts[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedFiles:
    """Files that metadata of a table references: some by name, others by the leaves that list them.

    A leaf that cannot be read is an error; with ``skip_unreadable`` its files are left out, and the reason is stated.
    """

    store: ManifestStore
    table_location: str
    files: pa.Table = field(default_factory=REFERENCED.empty_table)
    leaves: tuple[LeafFiles, ...] = ()
    skip_unreadable: bool = False

    def read(self) -> tuple[pa.Table, tuple[str, ...]]:
        """All files, each location once, and why leaves were left out."""
        found, problems = DistinctFiles(), []
        found.add(self.files)
        for files, problem in self.leaf_files():
            if files is None:
                problems.append(str(problem))
            else:
                found.add(files)
        return found.all(), tuple(problems)

    def leaf_files(self) -> Iterator[tuple[pa.Table, None] | tuple[None, str]]:
        """The files of each leaf, or why it cannot be read; the next leaves are read ahead."""
        place = 0
        while place < len(self.leaves):
            leaves = self.leaves[place:]
            try:
                rows = read_leaves(self.store, [each.leaf for each in leaves], NO_STATISTICS)
                for each, entries in zip(leaves, rows, strict=True):
                    files = each.files_of(entries)
                    place += 1
                    yield files, None
            except IcefloeError as error:
                if not self.skip_unreadable:
                    raise
                yield None, f"the files of manifest {self.leaves[place].leaf.location} are not freed: {error}"
                place += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFolder:
    """The files that storage lists in a folder of a table."""

    io: FileIO
    folder: str
    table_location: str

    def read(self) -> pa.Table:
        """All files."""
        return list_files(self.io, self.folder)

    def may_be_orphan(self, locations: pa.Array) -> pa.Array:
        """Which files may be orphans: not the journals, the version hint, and hidden files of other programs."""
        return may_be_orphan(locations, self.table_location, self.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreferenced:
    """The files of one set that are not in another set of kept files, each location once, in order of locations.

    ``similar`` are locations of kept files, among them all that may be one of the files under another name.
    ``folders`` are the folders of kept files, if the table is on a local disk, where a folder may be a link.
    """

    files: pa.Table
    similar: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    folders: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    listed: int = 0  # files of a folder that may be orphans, referenced or not
    problems: tuple[str, ...] = ()  # why leaves of the first set were left out


class FileSets(Protocol):
    """What maintenance does with whole sets of files of a table, in this process or on Spark."""

    def subtract(self, files: ReferencedFiles, kept: ReferencedFiles, *, check: bool = True) -> Unreferenced:
        """The files of one set that are not in the other, however their locations are spelled.

        With ``check``, the result has what shows whether a file may be a kept one under another name.
        """
        ...

    def unreferenced(self, listing: ListedFolder, kept: Callable[[], ReferencedFiles]) -> Unreferenced:
        """The files of a folder that may be orphans and are not kept; ``kept`` is called after the folder was listed.

        Of the kept files, only those are compared by similar names that are not listed.
        """
        ...

    def work_on(self, work: FileWork, io: FileIO, files: pa.Table) -> Iterator[pa.Table]:
        """The results of work on the rows of a table of files, such as their entries, in order."""
        ...


def entry_files(entries: pa.Table) -> pa.Table:
    """The files of live entries."""
    return pa.concat_tables(
        [
            named_files(choose(entries, of_type(entries, *types)), kind)
            for kind, types in (
                (Kind.DATA, (ContentType.DATA,)),
                (Kind.DELETES, (*DELETES, ContentType.MANIFEST_DV)),
                (Kind.MANIFEST, MANIFESTS),
            )
        ]
    )


def named_files(entries: pa.Table, kind: Kind) -> pa.Table:
    """The files that entries name, as files of one kind; the location of an inline vector is not its file."""
    chosen = pc.and_(pc.is_valid(entries["location"]), pc.is_null(entries["dv_inline_content"]))
    named = entries.select(["location", "file_size_in_bytes", "content_type"]).filter(chosen)
    return files_at(named["location"], kind, named["file_size_in_bytes"], named["content_type"])


def files_at(
    locations: Iterable[str] | pa.ChunkedArray,
    kind: Kind,
    sizes: Column | None = None,
    content: Column | None = None,
) -> pa.Table:
    """Files of one kind as columns."""
    column = locations if isinstance(locations, pa.ChunkedArray) else pa.array(list(locations), pa.string())
    sizes = pa.nulls(len(column), pa.int64()) if sizes is None else sizes
    content = pa.nulls(len(column), pa.int32()) if content is None else content
    return pa.table([column, pa.repeat(kind.value, len(column)), sizes, content], schema=REFERENCED)


def distinct_files(parts: Iterable[pa.Table]) -> pa.Table:
    """Each location once, with its first kind in the alphabet and its size."""
    every = pa.concat_tables([REFERENCED.empty_table(), *parts])
    every = every.set_column(1, "kind", pc.index_in(every["kind"], value_set=_KINDS))  # numbers are compared faster
    measures = [("kind", "min"), ("bytes", "max"), ("content", "min")]
    grouped = every.group_by("location", use_threads=False).aggregate(measures)
    kinds = _KINDS.take(grouped["kind_min"].combine_chunks())
    return pa.table([grouped["location"], kinds, grouped["bytes_max"], grouped["content_min"]], schema=REFERENCED)


def parent_folders(locations: Column) -> Column:
    """The folder of each location."""
    return pc.replace_substring_regex(locations, "/[^/]*$", "")


def list_files(io: FileIO, folder: str) -> pa.Table:
    """All files in a folder as columns."""
    return pa.concat_tables([LISTED.empty_table(), *listed_parts(io.list(folder))])


def listed_parts(files: Iterator[FileInfo]) -> Iterator[pa.Table]:
    """Listed files as columns, part by part."""
    while len(infos := list(islice(files, _BATCH))) > 0:
        locations = pa.array([info.location for info in infos], pa.string())
        sizes = pa.array([info.size for info in infos], pa.int64())
        times = pa.array([info.modified_ms for info in infos], pa.int64())
        yield pa.table([locations, _guessed_kinds(locations), sizes, times], schema=LISTED)


def _guessed_kinds(locations: pa.Array) -> pa.Array:
    """A guess of the kind of each file by its name."""
    in_metadata = pc.match_substring(locations, f"/{METADATA_FOLDER}/")
    rules = (
        (pc.match_substring_regex(locations, METADATA_NAME), Kind.METADATA.value),
        (pc.match_substring_regex(locations, _TEMPORARY), "temporary"),
        (pc.and_(in_metadata, pc.match_substring_regex(locations, r"\.(avro|parquet)$")), Kind.MANIFEST.value),
        (pc.and_(in_metadata, pc.match_substring_regex(locations, r"\.(puffin|stats)$")), Kind.STATISTICS.value),
        (pc.match_substring_regex(locations, r"(\.puffin|-deletes\.[a-z]+)$"), Kind.DELETES.value),
        (pc.match_substring_regex(locations, r"\.(parquet|orc|avro)$"), Kind.DATA.value),
    )
    conditions = pc.make_struct(*(rule for rule, _ in rules), field_names=[str(n) for n in range(len(rules))])
    return pc.case_when(conditions, *(pa.scalar(kind) for _, kind in rules), pa.scalar(OTHER))


def may_be_orphan(locations: pa.Array, table_location: str, folder: str) -> pa.Array:
    """Which files may be orphans: not the journals, the version hint, and hidden files of other programs."""
    inner = pc.binary_replace_slice(locations, 0, len(folder.encode()), "")
    own = pc.or_(pc.match_substring_regex(inner, _TEMPORARY), pc.match_substring_regex(inner, _KILLED))
    hidden = pc.and_(pc.match_substring_regex(inner, _HIDDEN), pc.invert(own))
    journals = pc.starts_with(locations, f"{journal_folder(table_location)}/")
    hints = pc.match_substring_regex(locations, _HINT)
    return pc.invert(pc.or_(pc.or_(hidden, journals), hints))


def journal_folder(table_location: str) -> str:
    """The folder of the journals of deletions of a table."""
    return f"{table_location.rstrip('/')}/{METADATA_FOLDER}/{JOURNAL_FOLDER}"
