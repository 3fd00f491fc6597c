"""The Spark of the tests that need one, the same that tests/spark has."""

from __future__ import annotations

from spark.conftest import spark

__all__ = ["spark"]
