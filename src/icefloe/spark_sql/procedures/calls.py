"""Answers calls about procedures: which there are, and CALL.

The procedures are actions on tables, with the names and arguments of Apache Iceberg. What Apache Iceberg says by a
grammar of its own (partition fields, branches, tags, write order, identifier fields) is a procedure here too.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from icefloe.catalogs.names import Identifier, parse_identifier
from icefloe.errors import InputError
from icefloe.spark_sql.messages import CallProcedure, ListProcedures, LoadProcedure, ProcedureDescription
from icefloe.spark_sql.procedures import definitions, files, maintenance, snapshots
from icefloe.spark_sql.procedures.procedure import Procedure
from icefloe.table.catalog import Catalog

PROCEDURES = {
    value.described.name: value
    for module in (definitions, files, maintenance, snapshots)
    for value in vars(module).values()
    if isinstance(value, Procedure)
}
_NAMESPACE = ("system",)


class ProcedureCalls:
    """The procedures of a catalog; ``name`` is the name under which Spark knows it."""

    def __init__(self, name: str, catalog: Catalog) -> None:
        self._name = name
        self._catalog = catalog

    def list_procedures(self, call: ListProcedures) -> list[str]:
        """The names of all procedures."""
        return sorted(PROCEDURES) if call.namespace in ((), _NAMESPACE) else []

    def load_procedure(self, call: LoadProcedure) -> ProcedureDescription:
        """A procedure, in upper or lower case."""
        name = call.name.lower()
        if call.namespace != _NAMESPACE or name not in PROCEDURES:
            known = ", ".join(sorted(PROCEDURES))
            raise InputError(
                f"catalog {self._name} has no procedure {'.'.join(call.identifier)}; the namespace system has: {known}"
            )
        return PROCEDURES[name].described

    def call_procedure(self, call: CallProcedure) -> Any:
        """Run a procedure; the answer are its rows, as Spark stores them."""
        procedure, arguments = PROCEDURES[call.procedure], call.arguments
        for parameter in procedure.described.parameters:
            if parameter.default is None and parameter.name not in arguments:
                raise InputError(f"{call.procedure}: {parameter.name} is NULL; give a value", parameter=parameter.name)
        rows = procedure.run(self._catalog, self._identifier(str(arguments["table"])), arguments)
        frame = SparkSession.active().createDataFrame(rows, procedure.described.result)
        return frame._jdf.queryExecution().executedPlan().executeCollect()

    def _identifier(self, text: str) -> Identifier:
        """The identifier of a table, whose name may begin with that of the catalog."""
        name = parse_identifier(text)
        has_catalog = len(name) > 2 and name[0] == self._name and not self._catalog.namespace_exists(name[:-1])
        return name[1:] if has_catalog else name
