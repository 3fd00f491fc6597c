"""The latest change of each key, on Spark."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from icefloe.engines.changes import IS_DELETE, ChangeKeys, ambiguous
from icefloe.engines.spark.change.conditions import not_understood
from icefloe.engines.spark.change.values import column_of, text_of
from icefloe.engines.spark.write.conform import VALUE, failure, quoted

_CHANGE, _FIRST, _LAST = "_icefloe_change", "_icefloe_first", "_icefloe_last"


def latest_changes(rows: DataFrame, by: ChangeKeys) -> DataFrame:
    """One row per key, that with the greatest sequence, with the column ``IS_DELETE``.

    The query fails with an InputError for a null in a key or sequence, and if a key has two different last changes.
    """
    by.check(rows.columns)
    keys, sequence = [F.col(quoted(name)) for name in by.keys], F.col(quoted(by.sequence_by))
    is_delete = F.lit(False)
    if by.delete_when is not None:
        is_delete = F.coalesce(column_of(by.delete_when.node), F.lit(False))
    for name, column in zip((*by.keys, by.sequence_by), (*keys, sequence), strict=True):
        message = f"apply_changes: column {name!r} of the changes has a null"
        is_delete = F.when(column.isNull(), failure(message)).otherwise(is_delete)
    try:
        checked = rows.alias("s").withColumn(IS_DELETE, is_delete)
    except (AnalysisException, ParseException) as error:
        text = "" if by.delete_when is None else text_of(by.delete_when.node)
        raise not_understood(text, error) from error
    columns = F.struct(*(F.col(quoted(name)) for name in (*rows.columns, IS_DELETE)))
    content = F.xxhash64(F.to_json(columns))
    # Of the changes with the greatest sequence, the least and the greatest hash are equal if the changes are.
    grouped = checked.groupBy(*keys).agg(
        F.max_by(columns, sequence).alias(_CHANGE),
        F.max(F.struct(sequence, content)).alias(_LAST),
        F.max(F.struct(sequence, F.bitwise_not(content))).alias(_FIRST),
    )
    shown = F.to_json(F.struct(*keys))
    message = str(ambiguous(VALUE, by.sequence_by, "the same value"))
    is_same = F.col(f"{_LAST}.col2") == F.bitwise_not(F.col(f"{_FIRST}.col2"))
    change = F.when(is_same, F.col(_CHANGE)).otherwise(failure(message, shown))
    return grouped.select(change.alias(_CHANGE)).select(f"{_CHANGE}.*")
