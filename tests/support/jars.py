"""The jars that interoperability tests and benches run in Spark, fetched with Maven on first use.

They are kept in ``.cache/jars`` of the checkout. Run this file to fetch them all and print where they are.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
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


# Hadoop's file system for S3, of the Hadoop that pyspark 4.1 has, and the modules of Amazon's SDK that it needs. The
# bundle of the whole SDK, on which it depends, has 600 MB.
S3A = (
    Artifact(group="org.apache.hadoop", name="hadoop-aws", version="3.4.2"),
    *(
        Artifact(group="software.amazon.awssdk", name=name, version="2.29.52")
        for name in ("s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
    ),
)
_LEFT_OUT = ("software.amazon.awssdk:bundle", "org.wildfly.openssl:wildfly-openssl")


class JarUnavailable(RuntimeError):
    """A jar is not in the cache and could not be fetched."""


def fetch(artifact: Artifact, cache: Path = CACHE) -> Path:
    """Return the path of the artifact's jar, fetching it if it is not in the cache yet."""
    target = cache / artifact.file_name
    if target.exists():
        return target
    maven = _maven(artifact, cache, f"copy {artifact.file_name} there")
    with one_at_a_time(cache):
        if target.exists():
            return target
        # A folder beside the target, so that the last step is a rename: a jar is there whole or not at all.
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
            _copy(maven, artifact, Path(folder))
            os.replace(Path(folder) / artifact.file_name, target)
    return target


def fetch_with_dependencies(artifacts: Sequence[Artifact], cache: Path = CACHE) -> list[Path]:
    """Return the paths of jars and of all that they depend on, fetching them if they are not in the cache yet.

    They are in a folder of their own, which is named after the first of them.
    """
    target = cache / artifacts[0].file_name.removesuffix(".jar")
    if not target.exists():
        maven = _maven(artifacts[0], cache, f"copy it and what it depends on to {target}")
        with one_at_a_time(cache), tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as folder:
            if not target.exists():
                _copy_dependencies(maven, artifacts, Path(folder))
                os.replace(Path(folder) / "jars", target)
    return sorted(target.glob("*.jar"))


def _maven(artifact: Artifact, cache: Path, instead: str) -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarUnavailable(
            f"{artifact.coordinates} is not in {cache} and Maven is not installed to fetch it: "
            f"install Maven (mvn), or {instead}"
        )
    return maven


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Let one process at a time fill a folder; several processes run tests, and Maven cannot share its folder."""
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
    _run(command, artifact, folder / artifact.file_name)


def _copy_dependencies(maven: str, artifacts: Sequence[Artifact], folder: Path) -> None:
    """Copy jars to ``jars`` in the folder, by a project that depends on them."""
    exclusions = "".join(_element("exclusion", *name.split(":")) for name in _LEFT_OUT)
    dependencies = "".join(
        _element("dependency", each.group, each.name, each.version, f"<exclusions>{exclusions}</exclusions>")
        for each in artifacts
    )
    (folder / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>icefloe</groupId>'
        f"<artifactId>jars</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    goal = "dependency:copy-dependencies"
    command = [maven, "-B", "-q", goal, "-DincludeScope=runtime", f"-DoutputDirectory={folder}/jars"]
    _run(command, artifacts[0], folder / "jars" / artifacts[0].file_name)


def _element(kind: str, group: str, name: str, version: str | None = None, more: str = "") -> str:
    stated = "" if version is None else f"<version>{version}</version>"
    return f"<{kind}><groupId>{group}</groupId><artifactId>{name}</artifactId>{stated}{more}</{kind}>"


def _run(command: list[str], artifact: Artifact, result: Path) -> None:
    folder = result.parent if result.parent.exists() else result.parents[1]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not result.exists():
        said = (done.stdout + done.stderr).strip()
        raise JarUnavailable(f"Maven could not fetch {artifact.coordinates} (exit {done.returncode}):\n{said}")


def classpath() -> str:
    """Return the jars as Spark's ``spark.jars`` wants them: paths joined by commas."""
    return ",".join(str(fetch(artifact)) for artifact in (ICEBERG, SQLITE))


def s3a_classpath() -> str:
    """The same for Hadoop's file system for S3."""
    return ",".join(map(str, fetch_with_dependencies(S3A)))


if __name__ == "__main__":
    for each in (ICEBERG, SQLITE, DELTA, DELTA_STORAGE):
        print(fetch(each))
