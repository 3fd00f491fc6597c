"""The pages of statements: each one runs on an empty catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icefloe
from spark_sql.statements import PAGES, Statement, run_page, statements


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.sql")), ids=lambda page: page.stem)
def test_the_statements_of_a_page_have_their_results(spark: SparkSession, demo: icefloe.Catalog, page: Path) -> None:
    run_page(spark, page)


def test_a_page_is_read_as_statements_with_rows_and_errors() -> None:
    text = "-- Words.\nSELECT 1,\n  2;\n--> 1 | 2\n\nSELECT x;\n--! AnalysisException: no x\nSELECT 3;\n"
    assert list(statements(text)) == [
        Statement(line=2, sql="SELECT 1,\n  2", rows=("1 | 2",), error=None),
        Statement(line=6, sql="SELECT x", rows=None, error=("AnalysisException", "no x")),
        Statement(line=8, sql="SELECT 3", rows=None, error=None),
    ]
