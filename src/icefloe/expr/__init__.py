"""Filters and value expressions.

A filter is parsed from SQL (``text/filter_parser.py``) to expressions (``filter/nodes.py``) and bound to a schema
(``filter/bind.py``). ``prune`` evaluates it on statistics of files (spec: Scan Planning), ``filter/batch_filter.py`` on
rows, and ``text/spark_sql.py`` converts it to Spark SQL. Values of UPDATE and MERGE are in ``value``.
"""
