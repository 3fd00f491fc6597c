"""The Spark session, for the tests that need one."""

from __future__ import annotations

from support.servers.spark import spark

__all__ = ["spark"]
