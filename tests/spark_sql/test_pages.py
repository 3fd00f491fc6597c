"""The pages of statements: each one runs on an empty catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

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


class Answers:
    """A session whose statements return one row or raise an error, by their texts."""

    def sql(self, text: str) -> Any:
        if text == "SELECT x":
            raise AnalysisException("there is no x")
        return self

    def collect(self) -> list[Row]:
        return [Row(a=1, b=None)]


def test_a_page_passes_only_with_the_results_that_it_names(tmp_path: Path) -> None:
    page = tmp_path / "page.sql"
    right = "SELECT 1;\n--> 1 | NULL\nSELECT 2;\nSELECT x;\n--! AnalysisException: no x\n"
    page.write_text(right)
    assert run_page(Answers(), page) == 3
    for wrong, found in (
        (right.replace("1 | NULL", "2 | NULL"), "--> 1 | NULL"),
        (right.replace("| NULL", "| NULL\n--> 1 | NULL"), "--> 1 | NULL"),
        (right.replace("no x", "no y"), "there is no x"),
        (right.replace("AnalysisException", "ParseException"), "there is no x"),
        (right.replace("--! AnalysisException: no x", ""), "there is no x"),
        (right.replace("SELECT x", "SELECT 3"), "--> 1 | NULL"),
    ):
        page.write_text(wrong)
        with pytest.raises(AssertionError, match=r"page\.sql:\d") as failure:
            run_page(Answers(), page)
        assert found in str(failure.value)
