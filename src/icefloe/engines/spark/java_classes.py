"""Java classes that the Janino compiler of Spark compiles inside the driver. Executors do not need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from icefloe.errors import UnsupportedError


def compile_java(spark: SparkSession, sources: Mapping[str, str], loader: Any) -> dict[str, bytes]:
    """Compile source files, by file name, against the classes of a loader; returns the bytes of each class by name.

    UnsupportedError with the compiler's message if Spark lacks a class or method that the sources use.
    """
    gateway = spark.sparkContext._gateway
    jvm = gateway.jvm
    resource = jvm.org.codehaus.commons.compiler.util.resource
    files = gateway.new_array(resource.Resource, len(sources))
    for place, (file, text) in enumerate(sources.items()):
        files[place] = resource.StringResource(file, text)
    classes = jvm.java.util.TreeMap()
    try:
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
        compiler.setTargetVersion(8)
        compiler.setClassFileCreator(resource.MapResourceCreator(classes))
        compiler.compile(files)
    except Py4JError as error:
        raise UnsupportedError(
            f"Spark {spark.version}: its classes differ from those that this version was made for: {_cause(error)}",
            feature="java classes",
        ) from error
    return {str(file).removesuffix(".class").replace("/", "."): bytes(classes[file]) for file in classes}


def define_classes(spark: SparkSession, classes: Mapping[str, bytes], loader: Any) -> None:
    """Define compiled classes in a class loader. They stay there as long as the JVM, and cannot be replaced."""
    jvm = spark.sparkContext._gateway.jvm
    define = next(
        method
        for method in jvm.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethods()
        if method.getName() == "defineClass"
        and [kind.getName() for kind in method.getParameterTypes()] == ["java.lang.String", "[B", "int", "int"]
    )
    define.setAccessible(True)
    for name, code in classes.items():
        define.invoke(loader, objects(spark, (name, code, 0, len(code))))


def objects(spark: SparkSession, values: Sequence[object]) -> Any:
    """A Java array of objects, as reflection takes arguments."""
    gateway = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.java.lang.Object, len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def _cause(error: Py4JError) -> str:
    return str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
