"""The jars that interoperability tests and benches run in Spark, fetched with Maven on first use.

They are kept in ``.cache/jars`` of the checkout. Run this file to fetch them all and print where they are.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "jars"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A jar by its Maven coordinates."""

    group: str
    name: str
    version: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


ICEBERG = Artifact(group="org.apache.iceberg", name="iceberg-spark-runtime-4.1_2.13", version="1.12.0")
SQLITE = Artifact(group="org.xerial", name="sqlite-jdbc", version="3.50.3.0")
DELTA = Artifact(group="io.delta", name="delta-spark_4.1_2.13", version="4.4.0")
DELTA_STORAGE = Artifact(group="io.delta", name="delta-storage", version="4.4.0")


class JarUnavailable(RuntimeError):
    """A jar is not in the cache and could not be fetched."""


def fetch(artifact: Artifact, cache: Path = CACHE) -> Path:
    """Return the path of the artifact's jar, fetching it if it is not in the cache yet."""
    target = cache / artifact.file_name
    if target.exists():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise JarUnavailable(
            f"{artifact.coordinates} is not in {cache} and Maven is not installed to fetch it: "
            f"install Maven (mvn), or copy {artifact.file_name} there"
        )
    with one_at_a_time(cache):
        if target.exists():
            return target
        # A folder beside the target, so that the last step is a rename: a jar is there whole or not at all.
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
            _copy(maven, artifact, Path(folder))
            os.replace(Path(folder) / artifact.file_name, target)
    return target


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process at a time fill a folder: tests run in several, and Maven's own store minds."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f".{folder.name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy(maven: str, artifact: Artifact, folder: Path) -> None:
    command = [
        maven,
        "-B",
        "-q",
        "dependency:copy",
        f"-Dartifact={artifact.coordinates}",
        f"-DoutputDirectory={folder}",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not (folder / artifact.file_name).exists():
        said = (done.stdout + done.stderr).strip()
        raise JarUnavailable(f"Maven could not fetch {artifact.coordinates} (exit {done.returncode}):\n{said}")


def classpath() -> str:
    """Return the jars as Spark's ``spark.jars`` wants them: paths joined by commas."""
    return ",".join(str(fetch(artifact)) for artifact in (ICEBERG, SQLITE))


if __name__ == "__main__":
    for each in (ICEBERG, SQLITE, DELTA, DELTA_STORAGE):
        print(fetch(each))
