"""SQL value expressions on Arrow columns: what UPDATE sets, what MERGE tests and inserts."""
