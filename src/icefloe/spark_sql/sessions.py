"""Attaches catalogs to Spark sessions: settings, Java classes, planning rules, and the object that answers calls.

The Java classes for streams, and those for joins of buckets, are compiled apart from the others: if Spark's classes for
them differ from those that this version was made for, streams are not available, or such joins have shuffles.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from icefloe.engines.spark.failures import marked
from icefloe.engines.spark.java_classes import JavaClasses, java_package, java_sources, objects
from icefloe.engines.spark.python_calls import java_function
from icefloe.engines.spark.session import PerJvm, spark_internals
from icefloe.errors import InputError, UnsupportedError
from icefloe.spark_sql.peer import Peer
from icefloe.table.catalog import Catalog

_PACKAGE = "icefloe.sql"  # as the Java sources name it
_OWN_PACKAGES = f"{_PACKAGE}_"
_SOURCE_PACKAGE = "icefloe"  # that of the class DefaultSource, by which Spark finds format("icefloe")
_OF_SPARK = "spark_catalog"


def attach(spark: SparkSession, name: str, catalog: Catalog) -> None:
    """Make a catalog known to a session, or replace the one that it knows by the name."""
    spark_internals(spark)
    setting = _setting(name)
    known = spark.conf.get(setting, None)
    if known is not None and not known.startswith(_OWN_PACKAGES):
        raise InputError(f"the session has another catalog {name!r}: {setting} is {known}; choose another name")
    classes = SQL_CLASSES.of(spark)
    peer_id = _peer_id(spark, name)
    classes.call(spark, "KeptPlans", "remove", peer_id)
    classes.field("Peer", "peers").get(None).put(peer_id, java_function(spark, Peer(name, catalog).apply))
    _add_rules(spark, classes)
    spark.conf.set(f"{setting}.peer", peer_id)
    spark.conf.set(setting, f"{classes.package}.IcefloeCatalog")


def detach(spark: SparkSession, name: str) -> None:
    """Remove an attached catalog from a session."""
    spark_internals(spark)
    setting = _setting(name)
    peer_id = spark.conf.get(f"{setting}.peer", None)
    if peer_id is None:
        raise InputError(f"no catalog {name!r} is attached to the session")
    classes = SQL_CLASSES.of(spark)
    classes.field("Peer", "peers").get(None).remove(peer_id)
    classes.call(spark, "KeptPlans", "remove", peer_id)
    spark.conf.unset(setting)
    spark.conf.unset(f"{setting}.peer")


def _setting(name: str) -> str:
    if name == "" or "." in name or name == _OF_SPARK:
        raise InputError(f"a catalog cannot be called {name!r} in Spark SQL", name=name)
    return f"spark.sql.catalog.{name}"


def _peer_id(spark: SparkSession, name: str) -> str:
    """The id of a catalog's Python object: the same after detach and attach, since Spark keeps catalogs that it made.

    A session that Spark cloned has the id of the session from which it was cloned.
    """
    known = spark.conf.get(f"{_setting(name)}.peer", None)
    return f"{spark._jsparkSession.sessionUUID()}-{name}" if known is None else str(known)


def _add_rules(spark: SparkSession, classes: JavaClasses) -> None:
    """Add the planning rules to the session, once; sessions that are cloned from it later have them too."""
    methods = spark._jsparkSession.experimental()
    has_streams = classes.field("StreamSupport", "problem").get(None) is None
    has_buckets = classes.has("BucketedJoins")
    rules = (
        "PlannedScans",
        *(("BucketedJoins",) if has_buckets else ()),
        *(("PlannedStreamScans",) if has_streams else ()),
    )
    getattr(methods, "extraOptimizations_$eq")(_with(spark, classes, methods.extraOptimizations(), rules))
    strategies = (
        *("PlannedWrites", *(("PlannedBuckets",) if has_buckets else ())),
        *(("PlannedStreamWrites",) if has_streams else ()),
    )
    getattr(methods, "extraStrategies_$eq")(_with(spark, classes, methods.extraStrategies(), strategies))


def _with(spark: SparkSession, classes: JavaClasses, present: Any, simple_names: tuple[str, ...]) -> Any:
    """The rules that are present, without those of other versions of the classes, and one object of each class."""
    jvm: Any = spark._jvm
    rules = jvm.java.util.ArrayList()
    for place in range(present.size()):
        if not present.apply(place).getClass().getName().startswith(_OWN_PACKAGES):
            rules.add(present.apply(place))
    for simple_name in simple_names:
        rules.add(_new(spark, classes, simple_name))
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(rules).toSeq()


def _new(spark: SparkSession, classes: JavaClasses, simple_name: str) -> Any:
    """A new object of a class whose constructor takes no arguments."""
    return classes.constructor(simple_name).newInstance(objects(spark))


def sql_classes(spark: SparkSession) -> JavaClasses:
    """Compile the classes of this package and bind them; those for streams, and for joins of buckets, may fail."""
    units = ("", "buckets", "streams", "source")
    catalog, buckets, streams, source = (java_sources("icefloe.spark_sql", f"java/{unit}") for unit in units)
    classes = java_package(spark, _PACKAGE, catalog, buckets, streams)
    classes.define(spark, catalog)
    with suppress(UnsupportedError):
        classes.define(spark, buckets)
    try:
        classes.define(spark, streams)
        classes.field("StreamSupport", "current").set(None, _new(spark, classes, "Streams"))
    except UnsupportedError as error:
        problem = marked(UnsupportedError, f"streams are not available: {error}")
        classes.field("StreamSupport", "problem").set(None, problem)
    named = JavaClasses(source_package=_SOURCE_PACKAGE, package=_SOURCE_PACKAGE, loader=classes.loader)
    named.define(spark, source)
    named.field("DefaultSource", "source").set(None, _new(spark, classes, "NamedSource"))
    return classes


SQL_CLASSES = PerJvm(sql_classes)
