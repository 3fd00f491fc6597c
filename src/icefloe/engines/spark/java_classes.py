"""Java classes that the Janino compiler of Spark compiles inside the driver. Executors do not need them.

Their sources are files beside the Python modules. They are defined in a class loader that belongs to the whole
application, where Spark looks for catalogs. Classes there outlive a session and cannot be replaced, so a hash of the
sources is part of the name of their package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from icefloe.engines.spark.session import PerJvm, java_class
from icefloe.errors import UnsupportedError


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaClasses:
    """The classes of a package in a JVM."""

    source_package: str  # as the sources name it
    package: str
    loader: Any

    def load(self, simple_name: str) -> Any:
        """A class, as reflection knows it."""
        return self.loader.loadClass(f"{self.package}.{simple_name}")

    def constructor(self, simple_name: str) -> Any:
        """The only constructor of a class; ``newInstance`` takes ``objects``."""
        return self.load(simple_name).getConstructors()[0]

    def field(self, simple_name: str, name: str) -> Any:
        """A static field of a class, as reflection knows it."""
        return self.load(simple_name).getField(name)

    def call(self, spark: SparkSession, simple_name: str, method: str, *arguments: object) -> Any:
        """The result of a static method; a class has one method of this name."""
        found = next(known for known in self.load(simple_name).getMethods() if known.getName() == method)
        return found.invoke(None, objects(spark, *arguments))

    def define(self, spark: SparkSession, sources: Mapping[str, str]) -> None:
        """Compile source files, by name, and define their classes, unless the JVM has them already.

        UnsupportedError with the compiler's message if Spark lacks a class or method that the sources use.
        """
        if not self.has(next(iter(sources)).removesuffix(".java")):
            named, package = f"package {self.source_package};", f"package {self.package};"
            texts = {name: text.replace(named, package, 1) for name, text in sources.items()}
            _define(spark, _compiled(spark, texts, self.loader), self.loader)

    def has(self, simple_name: str) -> bool:
        """Whether the JVM has a class of the package."""
        try:
            self.load(simple_name)
        except Py4JJavaError:
            return False
        return True


def java_sources(anchor: str, folder: str = "java") -> dict[str, str]:
    """The Java files in a folder of a Python package, by name."""
    entries = sorted((files(anchor) / folder).iterdir(), key=_name)
    return {file.name: file.read_text("utf-8") for file in entries if file.name.endswith(".java")}


def _name(file: Traversable) -> str:
    return file.name


def java_package(spark: SparkSession, name: str, *units: Mapping[str, str]) -> JavaClasses:
    """The package for the classes of some source files, which are to be defined; a hash is part of its name."""
    digest = hashlib.sha256("".join(text for unit in units for text in unit.values()).encode()).hexdigest()
    loader = spark._jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return JavaClasses(source_package=name, package=f"{name}_{digest[:8]}", loader=loader)


def _engine_classes(spark: SparkSession) -> JavaClasses:
    sources = java_sources("icefloe.engines.spark")
    classes = java_package(spark, "icefloe.spark", sources)
    classes.define(spark, sources)
    return classes


ENGINE_CLASSES = PerJvm(_engine_classes)  # those of ``engines/spark/java``


def objects(spark: SparkSession, *values: object) -> Any:
    """A Java array of objects, as reflection takes arguments."""
    array = java_class(spark, "java.util.ArrayList")()
    for value in values:
        array.add(value)
    return array.toArray()


def _compiled(spark: SparkSession, sources: Mapping[str, str], loader: Any) -> dict[str, bytes]:
    """The bytes of each class by name, compiled against the classes of a loader."""
    gateway = spark.sparkContext._gateway
    jvm = gateway.jvm
    resource = jvm.org.codehaus.commons.compiler.util.resource
    texts = gateway.new_array(resource.Resource, len(sources))
    for place, (file, text) in enumerate(sources.items()):
        texts[place] = resource.StringResource(file, text)
    classes = jvm.java.util.TreeMap()
    try:
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
        compiler.setTargetVersion(8)
        compiler.setClassFileCreator(resource.MapResourceCreator(classes))
        compiler.compile(texts)
    except Py4JError as error:
        raise _unsupported(spark, error) from error
    return {str(file).removesuffix(".class").replace("/", "."): bytes(classes[file]) for file in classes}


def _define(spark: SparkSession, classes: Mapping[str, bytes], loader: Any) -> None:
    """Define compiled classes in a class loader. They stay there as long as the JVM, and cannot be replaced."""
    define = next(
        method
        for method in java_class(spark, "java.lang.Class").forName("java.lang.ClassLoader").getDeclaredMethods()
        if method.getName() == "defineClass"
        and [kind.getName() for kind in method.getParameterTypes()] == ["java.lang.String", "[B", "int", "int"]
    )
    define.setAccessible(True)
    pending = dict(classes)
    while len(pending) > 0:
        defined = [name for name, code in pending.items() if _is_defined_by(spark, define, loader, name, code)]
        if len(defined) == 0:
            raise UnsupportedError(f"Spark {spark.version}: cannot define {', '.join(pending)}", feature="java classes")
        pending = {name: code for name, code in pending.items() if name not in defined}


def _is_defined_by(spark: SparkSession, define: Any, loader: Any, name: str, code: bytes) -> bool:
    """Define a class; false if a class that it extends is not defined yet."""
    try:
        define.invoke(loader, objects(spark, name, code, 0, len(code)))
    except Py4JJavaError as error:
        if "NoClassDefFoundError" not in str(error):
            raise _unsupported(spark, error) from error
        return False
    return True


def _unsupported(spark: SparkSession, error: Py4JError) -> UnsupportedError:
    cause = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    return UnsupportedError(
        f"Spark {spark.version}: its classes differ from those that this version was made for: {cause}",
        feature="java classes",
    )
