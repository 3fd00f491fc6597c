"""The pages of statements on icefloe: each one runs in a new session, on empty catalogs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icefloe
from support.sql_pages import (
    CATALOGS,
    PAGES,
    Difference,
    Outcome,
    Statement,
    check_page,
    has_result,
    new_session,
    problem_of_iceberg,
    statements,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_statements_of_a_page_have_their_results(spark: SparkSession, tmp_path: Path, page: Path) -> None:
    check(spark, tmp_path, page)


@pytest.mark.thorough
@pytest.mark.parametrize("setting", ["spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_results_are_the_same_without_adaptive_plans_or_compiled_stages(
    spark: SparkSession, tmp_path: Path, page: Path, setting: str
) -> None:
    """Scar: MERGE failed in Spark's own metrics without adaptive plans."""
    check(spark, tmp_path, page, **{setting: "false"})


def check(spark: SparkSession, folder: Path, page: Path, **settings: str) -> None:
    """Run a page in a new session with settings."""
    with new_session(spark) as session:
        for name, value in settings.items():
            session.conf.set(name, value)
        for name in CATALOGS:
            files = f"{folder}/{name}"
            catalog = icefloe.catalog(name, uri=f"sqlite:///{files}.db", warehouse=f"file://{files}")
            icefloe.attach(session, name, catalog)
        check_page(session, page)
        for name in CATALOGS:
            icefloe.detach(session, name)


def test_a_page_is_read_as_statements_with_rows_errors_and_differences() -> None:
    text = (
        "-- Words.\nSELECT 1,\n  2;\n--> 1 | 2\n\nSELECT x;\n--! AnalysisException: no x\nSELECT 3;\n"
        "CALL a;\n--iceberg [grammar]: why\n--iceberg> 4\n--iceberg! text\n--iceberg; ALTER a\n--iceberg; DROP b\n"
    )
    difference = Difference(key="grammar", reason="why", rows=("4",), error="text", instead=("ALTER a", "DROP b"))
    assert list(statements(text)) == [
        Statement(line=2, text="SELECT 1,\n  2", rows=("1 | 2",)),
        Statement(line=6, text="SELECT x", error=("AnalysisException", "no x")),
        Statement(line=8, text="SELECT 3"),
        Statement(line=9, text="CALL a", difference=difference),
    ]
    for wrong in ("--> 1\n", "SELECT 1;\n--! no class\n", "SELECT 1;\n--iceberg no key\n"):
        with pytest.raises(AssertionError, match="line 1"):
            list(statements(wrong))


def test_a_result_is_compared_with_all_rows_and_the_class_of_the_error() -> None:
    rows = Statement(line=1, text="", rows=("a | *", "b"))
    assert has_result(rows, Outcome(rows=("a | 12", "b")))
    for outcome in (Outcome(rows=("a | 12",)), Outcome(rows=("b", "a | 1")), Outcome(error=("E", "a")), Outcome()):
        assert not has_result(rows, outcome)
    error = Statement(line=1, text="", error=("E", "[NO_X]"))
    assert has_result(error, Outcome(error=("E", "[NO_X] there is no x")))
    for outcome in (Outcome(error=("D", "[NO_X] no x")), Outcome(error=("E", "no x")), Outcome(rows=("x",)), Outcome()):
        assert not has_result(error, outcome)
    assert not has_result(Statement(line=1, text=""), Outcome(rows=("1",)))


def test_apache_iceberg_may_have_other_words_in_errors_but_not_other_names_of_spark() -> None:
    ours = Statement(line=1, text="", error=("AnalysisException", "there is no transform"))
    assert problem_of_iceberg(ours, Outcome(error=("Other", "cannot do it"))) is None
    assert problem_of_iceberg(ours, Outcome()) is not None
    named = Statement(line=1, text="", error=("AnalysisException", "[NO_X]"))
    assert problem_of_iceberg(named, Outcome(error=("Other", "[NO_X] there is no x"))) is None
    assert problem_of_iceberg(named, Outcome(error=("Other", "cannot do it"))) is not None


def test_a_difference_that_is_none_and_one_that_is_marked_wrongly_are_problems() -> None:
    def problem(difference: Difference, outcome: Outcome) -> str | None:
        return problem_of_iceberg(Statement(line=1, text="", rows=("1",), difference=difference), outcome)

    rows = Difference(key="k", reason="why", rows=("2",))
    assert problem(rows, Outcome(rows=("2",))) is None
    assert "remove the mark [k]" in str(problem(rows, Outcome(rows=("1",))))
    assert "another result than the one marked" in str(problem(rows, Outcome(rows=("3",))))
    assert "another result than the one marked" in str(problem(rows, Outcome(error=("E", "2"))))
    error = Difference(key="k", reason="why", error="no way")
    assert problem(error, Outcome(error=("E", "there is no way to do it"))) is None
    assert "another result than the one marked" in str(problem(error, Outcome(error=("E", "no"))))
    assert "another result than the one marked" in str(problem(error, Outcome()))
    instead = Difference(key="k", reason="why", instead=("ALTER a",))
    assert problem(instead, Outcome(error=("E", "any"))) is None
    assert problem(instead, Outcome()) is None
    assert "another result than the one marked" in str(problem(instead, Outcome(rows=("3",))))
