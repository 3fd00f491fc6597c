"""Writing data files of any format: partitioning, sorting, metrics, entries (spec: Writer requirements)."""
