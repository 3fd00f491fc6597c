"""What a procedure of CALL is: a function on a table, whose signature declares the parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from keyword import iskeyword
from typing import Annotated, Any, get_args, get_type_hints

from icefloe.catalogs.names import Identifier
from icefloe.spark_sql.messages import ParameterDescription, ProcedureDescription
from icefloe.table.catalog import Catalog

Row = tuple[object, ...]
Int = Annotated[int, "int"]  # a parameter that is an int in SQL, not a bigint

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The SQL type of a parameter, and the conversion of an argument of it: texts, or tuples or maps of texts.
_TYPES: Mapping[object, tuple[str, Callable[[Any], object]]] = {
    str: ("string", str),
    int: ("bigint", int),
    Int: ("int", int),
    float: ("double", float),
    bool: ("boolean", lambda text: text == "true"),
    datetime: ("timestamp", lambda text: _EPOCH + timedelta(microseconds=int(text))),
    list[str]: ("array<string>", list),
    list[int]: ("array<bigint>", lambda texts: [int(text) for text in texts]),
    dict[str, str]: ("map<string, string>", dict),
}
_DEFAULTS: Mapping[object, str | None] = {inspect.Parameter.empty: None, None: "NULL", False: "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure: what Spark knows of it, and the function that runs it."""

    described: ProcedureDescription
    is_of_catalog: bool  # the table does not exist yet: the function gets the catalog and the name of the table
    conversions: Mapping[str, Callable[[Any], object]]  # of the arguments except for the table, by name
    function: Callable[..., list[Row]]

    def run(self, catalog: Catalog, table: Identifier, arguments: Mapping[str, Any]) -> list[Row]:
        """The rows of a call, for a table of a catalog; null arguments are left out."""
        values = {
            f"{name}_" if iskeyword(name) else name: convert(arguments[name])
            for name, convert in self.conversions.items()
            if name in arguments
        }
        if self.is_of_catalog:
            return self.function(catalog, table, **values)
        return self.function(catalog.load_table(table), **values)


def procedure(result: str) -> Callable[[Callable[..., list[Row]]], Procedure]:
    """Makes a procedure of a function; ``result`` are the columns of its rows.

    The name, the description and the parameters, with types and defaults, are those of the function. A trailing
    underscore is not part of the name of a parameter.
    """

    def declared(function: Callable[..., list[Row]]) -> Procedure:
        first, *others = inspect.signature(function).parameters.values()
        is_of_catalog = first.name == "catalog"
        hints = get_type_hints(function, include_extras=True)
        parameters = [ParameterDescription(name="table", type="string", default=None)]
        conversions = {}
        for parameter in others[1:] if is_of_catalog else others:
            type_, conversion = _TYPES[_without_none(hints[parameter.name])]
            name = parameter.name.removesuffix("_")
            parameters.append(ParameterDescription(name=name, type=type_, default=_DEFAULTS[parameter.default]))
            conversions[name] = conversion
        described = ProcedureDescription(
            name=function.__name__,
            description=inspect.cleandoc(function.__doc__ or "").split(".")[0],
            parameters=tuple(parameters),
            result=result,
        )
        return Procedure(described=described, is_of_catalog=is_of_catalog, conversions=conversions, function=function)

    return declared


def _without_none(hint: Any) -> object:
    """The type of a parameter that may be omitted."""
    alternatives = [each for each in get_args(hint) if each is not type(None)]
    return alternatives[0] if type(None) in get_args(hint) else hint
