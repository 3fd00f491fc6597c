"""Set-up for every test: hypothesis profiles, a database server for those that ask, and the tests folder on the path.

``ICEFLOE_PROFILE`` picks the profile: ``default`` is small and repeatable, ``property`` is large and random.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.servers.postgres import postgres_server, postgres_uri
from support.servers.s3 import S3Server, s3_server

__all__ = ["postgres_server", "postgres_uri"]

sys.path.insert(0, str(Path(__file__).parent))

# A deadline would be a timing assertion, which a busy machine fails for no reason.
settings.register_profile("default", max_examples=50, deadline=None, derandomize=True, database=None)
settings.register_profile(
    "property", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("ICEFLOE_PROFILE", "default"))


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """A real S3 server on this machine, started for the first test that asks for it."""
    with s3_server() as server:
        yield server
