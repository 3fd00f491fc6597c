"""Imports at first use, for optional libraries and modules that are slow to load. No other module imports late.

A module that is loaded late is imported under ``TYPE_CHECKING`` as well, so that type checkers and the check of layers
see it::

    if TYPE_CHECKING:
        from icefloe.catalogs import sql
    else:
        sql = LazyModule("icefloe.catalogs.sql")
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from icefloe.errors import UnsupportedError

# Library -> what to install for it.
_INSTALL = {
    "click": "'icefloe[cli]'",
    "deltalake": "'icefloe[delta]'",
    "duckdb": "duckdb",
    "fsspec": "fsspec",
    "obstore": "'icefloe[s3]'",
    "pandas": "pandas",
    "polars": "polars",
    "psycopg": "'icefloe[postgres]'",
    "py4j": "'icefloe[spark]'",
    "pyspark": "'icefloe[spark]'",
    "rich": "'icefloe[cli]'",
    "typer": "'icefloe[cli]'",
    "yaml": "pyyaml",
}


class LazyModule(ModuleType):
    """A placeholder for a module, which is imported when one of its names is first used.

    >>> fractions = LazyModule("fractions")
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)  # found without this call from now on
        return value

    def __reduce__(self) -> tuple[type[LazyModule], tuple[str]]:
        return LazyModule, (self.__name__,)


def load_optional(module: str, *, needed_by: str) -> Any:
    """Import an optional library, or a module that imports one; UnsupportedError says what to install.

    >>> load_optional("polars", needed_by="to_polars()").__name__
    'polars'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or "").split(".")[0]
        if library not in _INSTALL:
            raise
        raise UnsupportedError(
            f"{needed_by} needs {library}, which is not installed: pip install {_INSTALL[library]}",
            feature=library,
            next_step=f"Run pip install {_INSTALL[library]}.",
        ) from error
