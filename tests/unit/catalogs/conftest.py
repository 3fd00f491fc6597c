"""A machine on which nothing is configured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder and a current folder with nothing in them."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    for name in [name for name in os.environ if name.startswith(("ICEFLOE_", "PYICEBERG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"
