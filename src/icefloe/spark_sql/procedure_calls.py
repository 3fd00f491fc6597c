"""Answers calls about procedures: which there are, and CALL."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from icefloe.catalogs.names import Identifier, parse_identifier
from icefloe.errors import InputError
from icefloe.spark_sql.messages import (
    CallProcedure,
    ListProcedures,
    LoadProcedure,
    ParameterDescription,
    ProcedureDescription,
)
from icefloe.spark_sql.procedures.declarations import PROCEDURES
from icefloe.table.catalog import Catalog

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
        procedure = PROCEDURES[name]
        parameters = (
            ParameterDescription(name=parameter.name, type=parameter.type, default=parameter.default)
            for parameter in procedure.parameters
        )
        return ProcedureDescription(
            name=name, description=procedure.description, parameters=tuple(parameters), result=procedure.result
        )

    def call_procedure(self, call: CallProcedure) -> Any:
        """Run a procedure; the answer are its rows, as Spark stores them."""
        procedure = PROCEDURES[call.procedure]
        arguments: dict[str, Any] = {**call.arguments, "table": self._identifier(str(call.arguments["table"]))}
        rows = procedure.run(self._catalog, arguments)
        frame = SparkSession.active().createDataFrame(rows, procedure.result)
        return frame._jdf.queryExecution().executedPlan().executeCollect()

    def _identifier(self, text: str) -> Identifier:
        """The identifier of a table, whose name may begin with that of the catalog."""
        name = parse_identifier(text)
        has_catalog = len(name) > 2 and name[0] == self._name and not self._catalog.namespace_exists(name[:-1])
        return name[1:] if has_catalog else name
