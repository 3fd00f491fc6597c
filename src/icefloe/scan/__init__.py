"""From a snapshot and a filter to the files worth reading, as Arrow columns (spec: Scan Planning)."""
