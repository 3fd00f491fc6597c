"""Sets of files of a table on Spark: tasks read leaves and list folders, joins compare locations.

The driver gets the files that are left, not those that are kept. Two locations are one file if their canonical forms
are equal (``model/location_columns.py``), so tasks compute this form, and Spark joins by it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructType

from icefloe.codecs.manifest.context import ManifestContext
from icefloe.engines.file_sets import (
    LISTED,
    REFERENCED,
    FileWork,
    LeafFiles,
    ListedFolder,
    ReferencedFiles,
    Unreferenced,
    listed_parts,
)
from icefloe.engines.spark.change.kept_rows import keep_rows
from icefloe.engines.spark.failures import marking, translated
from icefloe.engines.spark.read.file_work import work_on_files
from icefloe.engines.spark.schema import arrow_frame
from icefloe.engines.spark.storage import TaskStorage, task_storage
from icefloe.engines.spark.task_python import map_in_arrow
from icefloe.io.file_io import FileIO
from icefloe.model.columns import one_array
from icefloe.model.location_columns import canonical, file_names
from icefloe.model.locations import FILE, parse_location
from icefloe.tree.store import ManifestCache, ManifestStore

_TASKS_PER_CORE = 4
_ROWS = 10_000  # files in a batch of a task
_FILES = (  # the columns of files of both kinds of sets
    StructType()
    .add("location", StringType())  # null in a row that states a problem
    .add("kind", StringType())
    .add("bytes", LongType())
    .add("content", IntegerType())
    .add("modified_ms", LongType())
    .add("may_be_orphan", BooleanType())
    .add("canonical", StringType())  # null if it is the location itself
    .add("problem", StringType())
)
_COLUMNS = pa.schema(
    [
        *REFERENCED,
        LISTED.field("modified_ms"),
        pa.field("may_be_orphan", pa.bool_()),
        pa.field("canonical", pa.string()),
        pa.field("problem", pa.string()),
    ]
)


class SparkFileSets:
    """Sets of files as DataFrames of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def subtract(self, files: ReferencedFiles, kept: ReferencedFiles, *, check: bool = True) -> Unreferenced:
        """The files of one set that are not in the other."""
        spark = self._spark
        with ExitStack() as until, translated():
            others = _locations(_referenced(spark, kept))
            others = keep_rows(others, until) if check else others  # they are compared twice
            rest = _without(_referenced(spark, files), others)
            return _result(spark, rest, REFERENCED, others if check else None, kept.table_location)

    def unreferenced(self, listing: ListedFolder, kept: Callable[[], ReferencedFiles]) -> Unreferenced:
        """The files of a folder that may be orphans and are not kept."""
        spark = self._spark
        with ExitStack() as until, translated():
            # Listed now and once: a later listing has files of commits that the state of the table does not have.
            listed = keep_rows(_listed(spark, listing), until, is_deterministic=False)
            own = listed.where("may_be_orphan")
            count = own.count()
            referenced = kept()
            others = keep_rows(_locations(_referenced(spark, referenced)), until)
            missing = _without(others, listed)
            return _result(spark, _without(own, others), LISTED, missing, referenced.table_location, listed=count)

    def work_on(self, work: FileWork, io: FileIO, files: pa.Table) -> Iterator[pa.Table]:
        """The results of work on files, which tasks do."""
        return work_on_files(self._spark, work, io, files)


def _referenced(spark: SparkSession, files: ReferencedFiles) -> DataFrame:
    """The files of a set; leaves are read by tasks."""
    named = arrow_frame(spark, _columns(files.files, files.table_location))
    if len(files.leaves) == 0:
        return named
    work = _LeafWork(
        storage=task_storage(files.store.io),
        context=files.store.context,
        table_location=files.table_location,
        skip_unreadable=files.skip_unreadable,
    )
    pickled = pa.table({"leaf": pa.array([pickle.dumps(leaf) for leaf in files.leaves], pa.binary())})
    return named.unionAll(map_in_arrow(_spread(spark, pickled), work, _FILES))


def _listed(spark: SparkSession, listing: ListedFolder) -> DataFrame:
    """The files of a folder; a task lists it."""
    work = _ListingWork(storage=task_storage(listing.io), folder=listing.folder, table_location=listing.table_location)
    return map_in_arrow(_spread(spark, pa.table({"folder": [listing.folder]})), work, _FILES)


def _spread(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows for tasks, a few for each core."""
    tasks = min(rows.num_rows, _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    return arrow_frame(spark, rows).repartition(tasks)


def _locations(files: DataFrame) -> DataFrame:
    return files.select("location", "canonical").distinct()


def _without(files: DataFrame, others: DataFrame) -> DataFrame:
    """The files that are not among others. Rows that state a problem stay, as they have no location."""
    mine, theirs = files.alias("mine"), others.alias("theirs")
    same = _key("mine") == _key("theirs")
    return mine.join(theirs, same, "left_anti")


def _key(side: str) -> Column:
    return F.coalesce(F.col(f"{side}.canonical"), F.col(f"{side}.location"))


def _result(
    spark: SparkSession,
    rest: DataFrame,
    schema: pa.Schema,
    kept: DataFrame | None,
    table_location: str,
    listed: int = 0,
) -> Unreferenced:
    measures = [F.min("kind").alias("kind"), F.max("bytes").alias("bytes"), F.min("content").alias("content")]
    times = F.max("modified_ms").alias("modified_ms")
    found = rest.groupBy("location", "problem").agg(*measures, times).toArrow()
    problems = tuple(found["problem"].drop_null().to_pylist())
    files = found.filter(pc.is_valid(found["location"])).select(schema.names).cast(schema).sort_by("location")
    if kept is None or files.num_rows == 0:
        return Unreferenced(files=files, listed=listed, problems=problems)
    return Unreferenced(
        files=files,
        similar=_similar(spark, kept, files["location"], table_location),
        folders=_folders(kept, table_location),
        listed=listed,
        problems=problems,
    )


def _similar(spark: SparkSession, kept: DataFrame, files: pa.ChunkedArray, table_location: str) -> pa.Array:
    """The kept files that may be one of the files under another name: the last segment must be the same.

    Two plain paths in the table that are spelled like its location are never one file. So one of the two is not plain.
    """
    prefix = table_location.rstrip("/") + "/"
    dots = pc.or_(pc.match_substring(files, "/."), pc.match_substring(files, "/%2"))
    plain = pc.and_(pc.starts_with(files, prefix), pc.invert(dots))
    named = pa.table({"name": file_names(files), "is_plain": plain})
    names = arrow_frame(spark, named.group_by("name").aggregate([("is_plain", "min")]))
    location = F.col("location")
    rows = kept.select(
        location,
        F.regexp_replace(location, "(?s)^.*/", "").alias("kept_name"),
        (location.startswith(prefix) & ~location.contains("/.") & ~location.contains("/%2")).alias("is_kept_plain"),
    )
    suspect = (F.col("kept_name") == F.col("name")) & ~(F.col("is_kept_plain") & F.col("is_plain_min"))
    found = rows.join(names, suspect, "left_semi").select("location").distinct().toArrow()
    return one_array(found["location"].cast(pa.string()))


def _folders(kept: DataFrame, table_location: str) -> pa.Array:
    """The folders of kept files on a local disk."""
    if parse_location(table_location).scheme != FILE:
        return pa.array([], pa.string())
    folder = F.regexp_replace("location", "/[^/]*$", "").alias("folder")
    return one_array(kept.select(folder).distinct().toArrow()["folder"].cast(pa.string()))


def _columns(files: pa.Table, table_location: str, may_be_orphan: pa.Array | None = None) -> pa.Table:
    """Files with all columns."""
    locations = one_array(files["location"])
    texts = canonical(locations, table_location)
    given = {
        "may_be_orphan": pa.nulls(files.num_rows, pa.bool_()) if may_be_orphan is None else may_be_orphan,
        "canonical": pc.if_else(pc.equal(texts, locations), None, texts),
        **{name: files[name] for name in files.column_names},
    }
    missing = {field.name: pa.nulls(files.num_rows, field.type) for field in _COLUMNS if field.name not in given}
    return pa.table({**given, **missing}).select(_COLUMNS.names).cast(_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeafWork:
    """What tasks do: read leaves and return their files."""

    storage: TaskStorage
    context: ManifestContext
    table_location: str
    skip_unreadable: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The files of pickled leaves; those of a leaf are read while the files of the one before are used."""
        with marking():
            store = ManifestStore(self.storage.open(), self.context, ManifestCache(0))
            for batch in batches:
                leaves: tuple[LeafFiles, ...] = tuple(pickle.loads(leaf) for leaf in batch.column(0).to_pylist())
                files = ReferencedFiles(
                    store=store,
                    table_location=self.table_location,
                    leaves=leaves,
                    skip_unreadable=self.skip_unreadable,
                )
                for part, problem in files.leaf_files():
                    if part is None:
                        yield from _problem(problem).to_batches()
                    else:
                        yield from _columns(part, self.table_location).to_batches(max_chunksize=_ROWS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListingWork:
    """What tasks do: list folders."""

    storage: TaskStorage
    folder: str
    table_location: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The files of folders."""
        with marking():
            io = self.storage.open()
            listing = ListedFolder(io=io, folder=self.folder, table_location=self.table_location)
            for batch in batches:
                for folder in batch.column(0).to_pylist():
                    for part in listed_parts(io.list(folder)):
                        may_be = listing.may_be_orphan(one_array(part["location"]))
                        yield from _columns(part, self.table_location, may_be).to_batches()


def _problem(text: str | None) -> pa.Table:
    """A row that states why the files of a leaf are not known."""
    return pa.table({field.name: pa.array([None], field.type) for field in _COLUMNS}).set_column(
        _COLUMNS.get_field_index("problem"), "problem", pa.array([text], pa.string())
    )
