"""How many bytes of manifests one-file commits write, beside version 2. Bytes do not vary from run to run."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
MOST = 1.5  # with the measures that version 2 has too
MOST_WITH_ALL = 1.65  # with tight_bounds and avg_value_size_in_bytes


@pytest.mark.slow
@pytest.mark.parametrize("commits", [400, pytest.param(1000, marks=pytest.mark.thorough)])
def test_one_file_commits_write_at_most_one_and_a_half_times_the_bytes_of_version_2(
    commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    history_bytes = import_module("commits").history_bytes
    (old,) = history_bytes(2, [commits]).values()
    for new_measures, most in ((False, MOST), (True, MOST_WITH_ALL)):
        (new,) = history_bytes(4, [commits], new_measures=new_measures).values()
        assert new <= most * old
