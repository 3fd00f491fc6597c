"""Attaches catalogs to Spark sessions, so that the session's own SQL works on their tables."""

from __future__ import annotations

from typing import Any

from icefloe.engines.choose import check_session
from icefloe.lazy import load_optional
from icefloe.table.catalog import Catalog
from icefloe.table.catalog import catalog as open_catalog

_SESSIONS = "icefloe.spark_sql.sessions"


def attach(spark: Any, name: str, catalog: Catalog | None = None) -> Catalog:
    """Make a catalog known to a Spark session under a name, and return it; by default ``icefloe.catalog(name)``.

    ``spark.sql``, ``spark.table``, ``df.writeTo`` and ``spark.catalog`` then work on its tables, which are named
    ``name.namespace.table``. The session gets the setting ``spark.sql.catalog.<name>`` and no other. Sessions that
    Spark clones from it have the catalog too; a session from ``newSession()`` has to be attached itself. A second call
    with the same name replaces the catalog.

    >>> import icefloe
    >>> cat = icefloe.catalog("demo", uri="sqlite:///cat.db", warehouse="file:///wh")  # doctest: +SKIP
    >>> _ = icefloe.attach(spark, "demo", cat)  # doctest: +SKIP
    >>> spark.sql("CREATE TABLE demo.db.orders (id bigint, note string)")  # doctest: +SKIP
    >>> spark.sql("INSERT INTO demo.db.orders VALUES (1, 'first')")  # doctest: +SKIP
    """
    check_session(spark)
    sessions = load_optional(_SESSIONS, needed_by="icefloe.attach")
    attached = open_catalog(name) if catalog is None else catalog
    sessions.attach(spark, name, attached)
    return attached


def detach(spark: Any, name: str) -> None:
    """Remove a catalog that was attached from a session; its tables are not changed.

    >>> icefloe.detach(spark, "demo")  # doctest: +SKIP
    """
    check_session(spark)
    load_optional(_SESSIONS, needed_by="icefloe.detach").detach(spark, name)
