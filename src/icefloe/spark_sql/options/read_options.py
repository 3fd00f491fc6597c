"""The options of a read, by the names that Apache Iceberg gives them."""

from __future__ import annotations

from collections.abc import Mapping

from icefloe.errors import InputError
from icefloe.spark_sql.options.known_options import lowered

CHANGES = "changes"  # the name of the metadata table
STARTS, ENDS = ("start-snapshot-id", "start-timestamp"), ("end-snapshot-id", "end-timestamp")
OF_STATE = ("branch", "tag", "snapshot-id", "as-of-timestamp")
_OF_APPENDS = (STARTS[0], ENDS[0])
# Settings of Spark by which its readers divide files among tasks.
_SPLITS = {"split-size": "spark.sql.files.maxPartitionBytes", "file-open-cost": "spark.sql.files.openCostInBytes"}


def selecting_options(options: Mapping[str, str], metadata_table: str | None) -> dict[str, str]:
    """The options that say which rows of a table are read; InputError for one that such a read does not know.

    >>> selecting_options({"Branch": "audit", "split-size": "9", "path": "db.t"}, None)
    {'branch': 'audit'}
    """
    if metadata_table is None:
        known, what = (*OF_STATE, *_OF_APPENDS, *_SPLITS), "a read"
    elif metadata_table == CHANGES:
        known, what = (*OF_STATE, *STARTS, *ENDS, *_SPLITS), "a read of changes"
    else:
        known, what = OF_STATE, f"a read of the metadata table {metadata_table}"
    given = lowered(options, known, what)
    return {name: value for name, value in given.items() if name in known and name not in _SPLITS}


def split_settings(options: Mapping[str, str]) -> dict[str, str]:
    """The settings of Spark for how a read divides files among tasks.

    >>> split_settings({"Split-Size": "1000000"})
    {'spark.sql.files.maxPartitionBytes': '1000000'}
    """
    given = {name.lower(): value for name, value in options.items()}
    asked = {name: given[name] for name in _SPLITS if name in given}
    for name, value in asked.items():
        if not value.isdecimal() or int(value) == 0:
            raise InputError(f"option {name}={value!r}: give a number of bytes", option=name)
    return {_SPLITS[name]: value for name, value in asked.items()}
