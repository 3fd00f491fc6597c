"""The Java classes of this package: compiled once for each JVM, and defined where Spark looks for catalogs.

Spark loads a catalog by the name of its class, through a class loader that belongs to the whole application. Classes
there outlive a session and cannot be replaced, so a hash of the sources is part of the name of their package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from icefloe.engines.spark.java_classes import compile_java, define_classes, objects
from icefloe.engines.spark.session import PerJvm

_PACKAGE = "icefloe.sql"  # as the sources name it
_SOURCE_CLASS = "icefloe.DefaultSource"  # the name under which Spark looks for format("icefloe")


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaClasses:
    """The compiled classes of this package in a JVM."""

    package: str
    loader: Any

    def name(self, simple_name: str) -> str:
        """The full name of a class."""
        return f"{self.package}.{simple_name}"

    def load(self, simple_name: str) -> Any:
        """A class, as reflection knows it."""
        return self.loader.loadClass(self.name(simple_name))

    def new(self, spark: SparkSession, simple_name: str) -> Any:
        """A new object of a class whose constructor takes no arguments."""
        return self.load(simple_name).getConstructors()[0].newInstance(objects(spark, ()))

    def call(self, spark: SparkSession, simple_name: str, method: str, *arguments: object) -> Any:
        """The result of a static method; a class has one method of this name."""
        found = next(known for known in self.load(simple_name).getMethods() if known.getName() == method)
        return found.invoke(None, objects(spark, arguments))


def sources() -> dict[str, str]:
    """The sources, by file name, in the package whose name has their hash."""
    texts = _read("java")
    package = package_name(texts)
    return {name: text.replace(f"package {_PACKAGE};", f"package {package};", 1) for name, text in texts.items()}


def _read(folder: str) -> dict[str, str]:
    entries = (files("icefloe.spark_sql") / folder).iterdir()
    return {file.name: file.read_text("utf-8") for file in sorted(entries, key=_name) if file.name.endswith(".java")}


def _name(file: Traversable) -> str:
    return file.name


def package_name(texts: Mapping[str, str]) -> str:
    """The name of the package of some sources.

    >>> package_name({"A.java": "class A {}"})
    'icefloe.sql_107310d1'
    """
    digest = hashlib.sha256("".join(texts[name] for name in sorted(texts)).encode()).hexdigest()
    return f"{_PACKAGE}_{digest[:8]}"


def java_classes(spark: SparkSession) -> JavaClasses:
    """The classes in the JVM of a session, compiled at the first call."""
    return _CLASSES.of(spark)


def _compiled(spark: SparkSession) -> JavaClasses:
    texts = sources()
    package = texts["Peer.java"].split(";", 1)[0].removeprefix("package ")
    loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    classes = JavaClasses(package=package, loader=loader)
    if not _is_defined(loader, classes.name("Peer")):
        define_classes(spark, compile_java(spark, texts, loader), loader)
    if not _is_defined(loader, _SOURCE_CLASS):
        define_classes(spark, compile_java(spark, _read("java/stable"), loader), loader)
    loader.loadClass(_SOURCE_CLASS).getField("source").set(None, classes.new(spark, "NamedSource"))
    return classes


def _is_defined(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except Py4JJavaError:
        return False
    return True


_CLASSES = PerJvm(_compiled)
