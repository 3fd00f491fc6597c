"""The SQL functions that are transforms of columns, by the names that filters have for them."""

from __future__ import annotations

TIME_FUNCTIONS = {"years": "year", "months": "month", "days": "day", "hours": "hour", "void": "void"}
SIZED_FUNCTIONS = ("bucket", "truncate")
