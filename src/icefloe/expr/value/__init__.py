"""SQL value expressions on Arrow columns: the values that UPDATE sets and that MERGE tests and inserts."""
