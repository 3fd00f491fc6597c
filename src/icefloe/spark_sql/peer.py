"""The Python object that the Java classes of an attached catalog call."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_type_hints

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from icefloe.engines.spark.failures import marked
from icefloe.errors import (
    AlreadyExists,
    FormatError,
    IcefloeError,
    InputError,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    UnsupportedError,
)
from icefloe.spark_sql import messages
from icefloe.spark_sql.aggregates import AggregateCalls
from icefloe.spark_sql.catalog_calls import NAMESPACE_NOT_EMPTY, CatalogCalls
from icefloe.spark_sql.estimates import EstimateCalls
from icefloe.spark_sql.procedures.calls import ProcedureCalls
from icefloe.spark_sql.row_changes import RowChangeCalls
from icefloe.spark_sql.scans import Reads, ScanCalls
from icefloe.spark_sql.staged_tables import StagedTables
from icefloe.spark_sql.streams.calls import StreamCalls
from icefloe.spark_sql.table_loads import TableLoads
from icefloe.spark_sql.writes import WriteCalls
from icefloe.table.catalog import Catalog

Handler = Callable[..., object]  # (a call, the object of the JVM that it passes, if any) -> a value or a JVM object


class Peer:
    """Answers the calls about one catalog, from any thread."""

    def __init__(self, name: str, catalog: Catalog) -> None:
        self._handlers = handlers(name, catalog)

    def apply(self, text: str, passed: Any) -> Any:
        """The answer to a call: text, an object of the JVM, or the exception of Spark that the call ended with."""
        try:
            call = messages.parse_call(text)
            value = self._handlers[type(call)](call, *(() if passed is None else (passed,)))
            return value if isinstance(value, JavaObject) else messages.answer(value)
        except Exception as error:
            return spark_exception(error)


def handlers(name: str, catalog: Catalog) -> Mapping[type, Handler]:
    """The method that answers each call: its parameter ``call`` has the type of the call."""
    loads = TableLoads(catalog)
    reads, staged = Reads(), StagedTables(name, catalog, loads)
    owners = (
        *(CatalogCalls(name, catalog, loads), staged, ProcedureCalls(name, catalog), ScanCalls(loads, reads)),
        *(AggregateCalls(loads), EstimateCalls(loads)),
        *(WriteCalls(loads, staged), RowChangeCalls(loads, reads), StreamCalls(loads)),
    )
    methods = [getattr(owner, each) for owner in owners for each in dir(owner) if not each.startswith("_")]
    answered = {get_type_hints(method).get("call"): method for method in methods}
    return {call: answered[call] for call in get_args(messages.Call)}


def spark_exception(error: Exception) -> Any:
    """What Java throws for an error: the exception of Spark that caused it, or one with our message."""
    if isinstance(error, CapturedException) and error._origin is not None:
        return error._origin
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    if not isinstance(error, IcefloeError):
        text = marked(IcefloeError, f"an error that is not expected\n{traceback.format_exc()}")
        return messages.failure(messages.Failure(kind="execution", message=text))
    return messages.failure(messages.Failure(kind=_kind(error), message=marked(type(error), str(error))))


def _kind(error: IcefloeError) -> Any:
    if error.context.get("kind") == NAMESPACE_NOT_EMPTY:
        return NAMESPACE_NOT_EMPTY
    if isinstance(error, (NoSuchTable, NoSuchNamespace, AlreadyExists)):
        return type(error).__name__
    return "analysis" if isinstance(error, (InputError, UnsupportedError, NotFound, FormatError)) else "execution"
