"""Set-up for every test: which ones run and in which process, hypothesis profiles, and servers for those that ask.

``ICEFLOE_TESTS`` chooses the tests (``support/selection.py``). ``ICEFLOE_PROFILE`` chooses the hypothesis profile:
``few`` and ``default`` are small and repeatable, ``property`` is large and random.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from support.conformance import conforming_tables, pytest_runtest_makereport
from support.selection import CHOICE, DEFAULT_EXAMPLES, FEW_EXAMPLES, divide, uses
from support.servers.postgres import postgres_server, postgres_uri
from support.servers.s3 import S3Server, s3_server

__all__ = ["conforming_tables", "postgres_server", "postgres_uri", "pytest_runtest_makereport"]

sys.path.insert(0, str(Path(__file__).parent))
# Tests that start programs with a Spark of their own, which take minutes.
PROGRAMS = (
    "tests/spark/test_faults_on_a_cluster.py",
    "tests/spark/test_spark_connect.py",
    "tests/spark_sql/test_killed_streams.py",
    "tests/spark_sql/test_local_cluster.py",
    "tests/spark_sql/test_many_statements.py",
)
TOGETHER = {
    "programs": PROGRAMS,
    # The thorough run has more of them than of all others together, so that two sessions save time.
    "spark too": tuple(f"tests/spark/test_{letter}" for letter in "nopqrstuvwxyz" if CHOICE == "thorough"),
    "spark": (
        "tests/spark/",
        "tests/spark_sql/",
        "tests/version_4/test_plain_parquet.py",
        "tests/docs/test_code_blocks.py",
    ),
    "architecture": ("tests/architecture/",),
}

# A deadline would be a timing assertion, which a busy machine fails for no reason.
settings.register_profile("default", max_examples=DEFAULT_EXAMPLES, deadline=None, derandomize=True, database=None)
settings.register_profile("few", settings.get_profile("default"), max_examples=FEW_EXAMPLES)
settings.register_profile(
    "property", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("ICEFLOE_PROFILE", "few" if CHOICE in ("fast", "test") else "default"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests; those on Spark come first, since they take longest."""
    items[:], others = divide(items, CHOICE)
    config.hook.pytest_deselected(items=others)
    items.sort(key=lambda item: not (uses(item, "spark") or item.nodeid.startswith(PROGRAMS)))


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in docstrings of the package alone: tests have none, and their modules share names."""
    found = yield
    return [node for node in found if type(node) is pytest.Module]


class ByFileOrGroup(LoadFileScheduling):
    """Gives a process whole files of tests, and to one process all tests that share something costly.

    These are the tests on Spark, with one session or two, and the checks of the sources, which are parsed once.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((name for name, files in TOGETHER.items() if file.startswith(files)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Spread tests by files where the option is ``--dist loadfile``."""
    return ByFileOrGroup(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server on this machine, started for the first test that asks for it."""
    with s3_server() as server:
        yield server
