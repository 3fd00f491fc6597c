"""Java classes that the Janino compiler of Spark compiles inside the driver. Executors do not need them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
        raise _unsupported(spark, error) from error
    return {str(file).removesuffix(".class").replace("/", "."): bytes(classes[file]) for file in classes}


def compiled_constructor(class_name: str, source: str) -> Callable[[SparkSession], Any]:
    """A function that compiles one class, in a class loader of its own, and returns its constructor."""

    def compiled(spark: SparkSession) -> Any:
        jvm = spark._jvm
        try:
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
            compiler.cook(source)
            return compiler.getClassLoader().loadClass(class_name).getConstructors()[0]
        except Py4JError as error:
            raise _unsupported(spark, error) from error

    return compiled


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
    pending = dict(classes)
    while len(pending) > 0:
        defined = [name for name, code in pending.items() if _is_defined_by(spark, define, loader, name, code)]
        if len(defined) == 0:
            raise UnsupportedError(f"Spark {spark.version}: cannot define {', '.join(pending)}", feature="java classes")
        pending = {name: code for name, code in pending.items() if name not in defined}


def _is_defined_by(spark: SparkSession, define: Any, loader: Any, name: str, code: bytes) -> bool:
    """Define a class; false if a class that it extends is not defined yet."""
    try:
        define.invoke(loader, objects(spark, (name, code, 0, len(code))))
    except Py4JJavaError as error:
        if "NoClassDefFoundError" not in str(error):
            raise
        return False
    return True


def objects(spark: SparkSession, values: Sequence[object]) -> Any:
    """A Java array of objects, as reflection takes arguments."""
    gateway = spark.sparkContext._gateway
    array = gateway.new_array(gateway.jvm.java.lang.Object, len(values))
    for place, value in enumerate(values):
        array[place] = value
    return array


def _unsupported(spark: SparkSession, error: Py4JError) -> UnsupportedError:
    cause = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    return UnsupportedError(
        f"Spark {spark.version}: its classes differ from those that this version was made for: {cause}",
        feature="java classes",
    )
