"""Attaches catalogs to Spark sessions: settings, planning rules, and the Python object that answers calls."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from icefloe.engines.spark.python_calls import java_function
from icefloe.engines.spark.session import spark_internals
from icefloe.errors import InputError
from icefloe.spark_sql.java_sources import JavaClasses, java_classes
from icefloe.spark_sql.peer import Peer
from icefloe.table.catalog import Catalog

_OPTIMIZER_RULES = ("PlannedScans",)
_PLANNING_STRATEGIES = ("PlannedWrites", "PlannedStreamWrites")
_OWN_PACKAGES = "icefloe.sql_"
_OF_SPARK = "spark_catalog"


def attach(spark: SparkSession, name: str, catalog: Catalog) -> None:
    """Make a catalog known to a session, or replace the one that it knows by the name."""
    spark_internals(spark)
    setting = _setting(name)
    known = spark.conf.get(setting, None)
    if known is not None and not known.startswith(_OWN_PACKAGES):
        raise InputError(f"the session has another catalog {name!r}: {setting} is {known}; choose another name")
    classes = java_classes(spark)
    peer_id = _peer_id(spark, name)
    classes.call(spark, "KeptPlans", "remove", peer_id)
    _peers(classes).put(peer_id, java_function(spark, Peer(name, catalog).apply))
    _add_rules(spark, classes)
    spark.conf.set(f"{setting}.peer", peer_id)
    spark.conf.set(setting, classes.name("IcefloeCatalog"))


def detach(spark: SparkSession, name: str) -> None:
    """Remove an attached catalog from a session."""
    spark_internals(spark)
    setting = _setting(name)
    peer_id = spark.conf.get(f"{setting}.peer", None)
    if peer_id is None:
        raise InputError(f"no catalog {name!r} is attached to the session")
    classes = java_classes(spark)
    _peers(classes).remove(peer_id)
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


def _peers(classes: JavaClasses) -> Any:
    return classes.load("Peer").getField("peers").get(None)


def _add_rules(spark: SparkSession, classes: JavaClasses) -> None:
    """Add the planning rules to the session, once; sessions that are cloned from it later have them too."""
    methods = spark._jsparkSession.experimental()
    rules = _with(spark, classes, methods.extraOptimizations(), _OPTIMIZER_RULES)
    getattr(methods, "extraOptimizations_$eq")(rules)
    strategies = _with(spark, classes, methods.extraStrategies(), _PLANNING_STRATEGIES)
    getattr(methods, "extraStrategies_$eq")(strategies)


def _with(spark: SparkSession, classes: JavaClasses, present: Any, simple_names: tuple[str, ...]) -> Any:
    """The rules that are present, without those of other versions of the classes, and one object of each class."""
    jvm: Any = spark._jvm
    rules = jvm.java.util.ArrayList()
    for place in range(present.size()):
        if not present.apply(place).getClass().getName().startswith(_OWN_PACKAGES):
            rules.add(present.apply(place))
    for simple_name in simple_names:
        rules.add(classes.new(spark, simple_name))
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(rules).toSeq()
