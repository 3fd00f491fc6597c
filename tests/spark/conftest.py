"""The Spark session, and a small table of Parquet files to plan over."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark.fakes import Files
from support.servers.spark import spark, tokyo

__all__ = ["spark", "tokyo"]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "table")
