"""The folder of files that other programs wrote: a folder ``shared`` beside the checkout, or ``ICEFLOE_SHARED``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[2]


def shared(path: str) -> Path:
    """The file or folder of this relative path; the test is skipped where it is absent."""
    root = Path(os.environ.get("ICEFLOE_SHARED", _REPOSITORY.parent / "shared"))
    found = root / path
    if not found.exists():
        pytest.skip(f"{found} is absent: put the shared folder beside the checkout or set ICEFLOE_SHARED")
    return found
