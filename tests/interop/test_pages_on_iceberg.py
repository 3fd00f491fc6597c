"""The pages of Spark SQL on Apache Iceberg, in the same Spark: the same rows, but for the differences that they mark.

``support.sql_pages`` says how a difference is marked, and when two results are the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.sql_pages import CATALOGS, PAGES, new_session, problems_on_iceberg

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_apache_iceberg_has_the_results_of_a_page_but_for_marked_differences(
    spark: SparkSession, tmp_path: Path, page: Path
) -> None:
    with new_session(spark) as session:
        for name in CATALOGS:
            setting = f"spark.sql.catalog.{name}"
            session.conf.set(setting, "org.apache.iceberg.spark.SparkCatalog")
            session.conf.set(f"{setting}.catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog")
            session.conf.set(f"{setting}.uri", f"jdbc:sqlite:{tmp_path}/{name}.db")
            session.conf.set(f"{setting}.jdbc.schema-version", "V1")
            session.conf.set(f"{setting}.warehouse", f"file://{tmp_path}/{name}")
        problems = problems_on_iceberg(session, page)
    assert problems == [], "\n\n".join(problems)
