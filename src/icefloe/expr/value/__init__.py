"""SQL value expressions: the values that UPDATE sets and that MERGE tests and inserts, on Arrow and as Spark SQL."""
