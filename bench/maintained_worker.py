"""The process of one contender of bench ``maintained_commits``: appends, then maintains, and answers with samples.

Started as ``maintained_worker.py <contender> <folder> <rows> <snapshots to retain>``. Each request is answered with a
sample of every commit, and a last one of the maintenance after them.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from append_worker import MetadataFolder, commits, rows
from measure import Clock, Sample, peak_mb

OWN = "icefloe v4"
FORMER_FILES = 10  # metadata files before the current one that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintained:
    """A table of a contender: how it is appended to, and how it is maintained."""

    append: Callable[[], object]
    maintain: Callable[[], object]


def icefloe(folder: Path, data: pa.Table, retain: int) -> Maintained:
    library = importlib.import_module("icefloe")
    cat = library.catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    properties = {
        "history.expire.min-snapshots-to-keep": str(retain),
        "history.expire.max-snapshot-age-ms": "1",
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": str(FORMER_FILES),
    }
    table = cat.create_table("db.t", schema=data.schema, format_version=4, properties=properties)

    def maintain() -> None:
        result = table.maintain().execute()
        if len(result.left) > 0:
            raise RuntimeError(f"maintenance left work: {result}")

    return Maintained(append=lambda: table.append(data), maintain=maintain)


def delta(folder: Path, data: pa.Table, retain: int) -> Maintained:
    """Delta Lake retains by age alone: nothing here."""
    deltalake = importlib.import_module("deltalake")
    path = str(folder / "wh")
    settings = {
        "delta.logRetentionDuration": "interval 0 days",
        "delta.deletedFileRetentionDuration": "interval 0 days",
    }
    schema = deltalake.Schema.from_arrow(data.schema)
    table = deltalake.DeltaTable.create(path, schema=schema, configuration=settings)

    def maintain() -> None:
        table.optimize.compact()
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        table.create_checkpoint()
        table.cleanup_metadata()

    return Maintained(append=lambda: deltalake.write_deltalake(table, data, mode="append"), maintain=maintain)


def pyiceberg(folder: Path, data: pa.Table, retain: int) -> Maintained:
    sql = importlib.import_module("pyiceberg.catalog.sql")
    cat = sql.SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh")
    cat.create_namespace("db")
    properties = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": str(FORMER_FILES),
        "commit.manifest-merge.enabled": "true",
    }
    table = cat.create_table("db.t", schema=data.schema, properties=properties)

    def maintain() -> None:
        table.maintenance.expire_snapshots().older_than(datetime.now() + timedelta(days=1)).commit()

    return Maintained(append=lambda: table.append(data), maintain=maintain)


CONTENDERS: dict[str, Callable[[Path, pa.Table, int], Maintained]] = {
    OWN: icefloe,
    "delta-rs": delta,
    "pyiceberg": pyiceberg,
}


def upkeep(maintain: Callable[[], object], folder: Path) -> Sample:
    """The cost of maintenance, and what is in the folder of the table after it."""
    before = Clock.now()
    maintain()
    sample = before.until(Clock.now())
    files = [path for path in folder.rglob("*") if path.is_file() and "catalog.db" not in path.name]
    metadata = [path for path in files if {"metadata", "_delta_log"} & set(path.parts)]
    return sample | {
        "data_files": float(len(files) - len(metadata)),
        "metadata_files_kept": float(len(metadata)),
        "metadata_bytes_kept": float(sum(path.stat().st_size for path in metadata)),
        "peak_mb": peak_mb(),
    }


def main(contender: str, folder: str, count: str, retain: str) -> None:
    place = Path(folder)
    place.mkdir()
    table = CONTENDERS[contender](place, rows(int(count)), int(retain))
    metadata = MetadataFolder(place)
    metadata.news()
    print("[]", flush=True)  # ready
    for line in sys.stdin:
        samples = commits(table.append, metadata, None, int(line))
        samples.append(upkeep(table.maintain, place))
        metadata.news()
        print(json.dumps(samples), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
