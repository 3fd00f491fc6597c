"""Options of the JVM that runs Spark in tests."""

from __future__ import annotations

# Small queries spend most of their time in the compiler of the JVM. With one compiler the JVM keeps little room for
# compiled code, which is full after some hundred queries, and the JVM then compiles no more.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
