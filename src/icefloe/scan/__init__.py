"""Plans scans: chooses the files of a snapshot that a filter needs, as Arrow columns (spec: Scan Planning)."""
