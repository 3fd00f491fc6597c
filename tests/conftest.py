"""Set-up for every test: hypothesis profiles, and the tests folder on the path so that tests can share modules.

``ICEFLOE_PROFILE`` picks the profile: ``default`` is small and repeatable, ``property`` is large and random.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# A deadline would be a timing assertion, which a busy machine fails for no reason.
settings.register_profile("default", max_examples=50, deadline=None, derandomize=True, database=None)
settings.register_profile(
    "property", max_examples=2_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("ICEFLOE_PROFILE", "default"))
