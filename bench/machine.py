"""What a figure depends on besides the code: cores, memory, and the versions of everything that took part."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version

PACKAGES = ("icefloe", "pyarrow", "pyspark", "pyiceberg", "pyiceberg-core", "deltalake", "numpy")


def facts() -> dict[str, object]:
    """The machine and the versions; nothing that names the machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }
