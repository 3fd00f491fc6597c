"""How Spark reaches the storage of a table: tasks by a FileIO, Spark's own readers by Hadoop.

A FileIO is pickled with what another process needs to open the same storage, for an object store with properties such
as ``s3.endpoint`` and the keys. They are part of the function of the task, which plans and logs do not show.

Hadoop keeps one open file system per scheme and bucket, whatever the settings of the next query are. Files in S3 are
therefore read under a scheme of their own for each set of properties. It exists only in the Hadoop configuration of
the query, so neither the session nor other queries see the settings. What Hadoop cannot open, tasks read with the
FileIO of the table.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from icefloe.errors import IcefloeError, UnsupportedError
from icefloe.io.file_io import FileIO, properties_of
from icefloe.model.locations import S3

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_S3A_NEEDS = (_S3A, "software.amazon.awssdk.services.s3.S3Client")
_PROVIDERS = "org.apache.hadoop.fs.s3a."
_NAMES: Mapping[str, tuple[str, ...]] = {
    "fs.s3a.access.key": ("s3.access-key-id", "client.access-key-id"),
    "fs.s3a.secret.key": ("s3.secret-access-key", "client.secret-access-key"),
    "fs.s3a.session.token": ("s3.session-token", "client.session-token"),
    "fs.s3a.endpoint": ("s3.endpoint",),
    "fs.s3a.endpoint.region": ("s3.region", "client.region"),
}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_SCHEMES: dict[frozenset[tuple[str, str]], str] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStorage:
    """A pickled FileIO; its ``repr`` shows no settings."""

    pickled: bytes = field(repr=False)

    def open(self) -> FileIO:
        """The FileIO, in the process that calls this."""
        return cast(FileIO, pickle.loads(self.pickled))


def task_storage(io: FileIO) -> TaskStorage:
    """The storage of ``io`` for a task; UnsupportedError if no other process can open it.

    >>> from icefloe.io.local import LocalFileIO
    >>> type(task_storage(LocalFileIO()).open()).__name__
    'LocalFileIO'
    """
    try:
        return TaskStorage(pickled=pickle.dumps(io))
    except IcefloeError:
        raise
    except Exception as error:  # pickling raises errors of many types
        raise UnsupportedError(
            f"Spark's tasks cannot open this storage, because its {type(io).__name__} cannot be pickled: {error}",
            feature="storage in tasks",
        ) from error


def hadoop_path(location: str) -> str:
    """The location for Hadoop's ``Path``, which resolves a path without a scheme on the cluster's default storage.

    >>> hadoop_path("/wh/t")
    'file:///wh/t'
    """
    return f"file://{location}" if location.startswith("/") else location


def _hadoop_paths(locations: pa.ChunkedArray) -> pa.ChunkedArray:
    """The locations for Hadoop's ``Path``, which resolves a path without a scheme on the cluster's default storage."""
    return pc.replace_substring_regex(locations, "^/", "file:///")


@dataclass(frozen=True, slots=True, kw_only=True)
class HadoopStorage:
    """Whether Hadoop opens the storage of a table, and under which scheme and settings; no ``repr`` shows these."""

    is_readable: bool = True  # otherwise tasks read the files
    scheme: str | None = None  # of files in S3, in place of their own
    settings: Mapping[str, str] = field(default_factory=lambda: _NOTHING, repr=False)

    def path(self, location: str) -> str:
        """The location for Hadoop's ``Path``.

        >>> HadoopStorage().path("/wh/t"), HadoopStorage(scheme="s3-1").path("s3a://lake/t")
        ('file:///wh/t', 's3-1://lake/t')
        """
        scheme, separator, path = location.partition("://")
        if self.scheme is not None and separator != "" and scheme in S3:
            return f"{self.scheme}://{path}"
        return hadoop_path(location)

    def paths(self, locations: pa.ChunkedArray) -> pa.ChunkedArray:
        """``path`` for many locations."""
        paths = _hadoop_paths(locations)
        if self.scheme is None:
            return paths
        return pc.replace_substring_regex(paths, f"^({'|'.join(sorted(S3))})://", f"{self.scheme}://")


def hadoop_storage(spark: SparkSession, io: FileIO, location: str) -> HadoopStorage:
    """How the readers of a session reach a table's storage: for S3 by the properties of ``io``, if there is hadoop-aws.

    For other storage, and if there are no properties, it is what the session has for the scheme of the location.
    """
    scheme, separator, _ = location.partition("://")
    if separator == "" or scheme == "file":
        return HadoopStorage()
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    if scheme in S3 and all(configuration.getClassByNameOrNull(name) is not None for name in _S3A_NEEDS):
        properties = properties_of(io)
        if len(properties) > 0:
            settings = s3a_settings(properties)
            own = _own_scheme(settings)
            return HadoopStorage(scheme=own, settings={**settings, f"fs.{own}.impl": _S3A})
        if not _has_file_system(spark, configuration, scheme):
            return HadoopStorage(settings={f"fs.{scheme}.impl": _S3A})
    return HadoopStorage(is_readable=_has_file_system(spark, configuration, scheme))


def _has_file_system(spark: SparkSession, configuration: Any, scheme: str) -> bool:
    try:
        spark._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, configuration)
    except Py4JError:
        return False
    return True


def _own_scheme(settings: Mapping[str, str]) -> str:
    """The scheme of a set of settings: random, because it is shown in plans and must not tell the keys."""
    with _LOCK:
        return _SCHEMES.setdefault(frozenset(settings.items()), f"icefloe-s3-{uuid.uuid4().hex[:12]}")


def s3a_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Storage properties of a catalog as settings of Hadoop's S3A; they are checked where the FileIO is opened.

    >>> settings = s3a_settings({"s3.endpoint": "http://127.0.0.1:9000"})
    >>> settings["fs.s3a.endpoint"], settings["fs.s3a.connection.ssl.enabled"], settings["fs.s3a.path.style.access"]
    ('http://127.0.0.1:9000', 'false', 'true')
    """
    settings = {"fs.s3a.path.style.access": str(not _is_set("s3.force-virtual-addressing", properties)).lower()}
    for setting, names in _NAMES.items():
        value = next((properties[name] for name in names if name in properties), None)
        if value is not None:
            settings[setting] = value
    if "fs.s3a.endpoint" in settings:
        is_plain = settings["fs.s3a.endpoint"].startswith("http://")
        settings["fs.s3a.connection.ssl.enabled"] = str(not is_plain).lower()
    provider = _provider(settings, properties)
    if provider is not None:
        settings["fs.s3a.aws.credentials.provider"] = _PROVIDERS + provider
    if "s3.proxy-uri" in properties:
        proxy = urlsplit(properties["s3.proxy-uri"])
        settings["fs.s3a.proxy.host"] = str(proxy.hostname)
        settings["fs.s3a.proxy.port"] = str(proxy.port or (443 if proxy.scheme == "https" else 80))
    return settings


def _provider(settings: Mapping[str, str], properties: Mapping[str, str]) -> str | None:
    """The class that gives S3A the keys; without keys it is that of the session."""
    if _is_set("s3.anonymous", properties):
        return "AnonymousAWSCredentialsProvider"
    if "fs.s3a.session.token" in settings:
        return "TemporaryAWSCredentialsProvider"
    return "SimpleAWSCredentialsProvider" if "fs.s3a.access.key" in settings else None


def _is_set(name: str, properties: Mapping[str, str]) -> bool:
    return properties.get(name, "false").lower() == "true"
