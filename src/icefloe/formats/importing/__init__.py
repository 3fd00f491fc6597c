"""Data files of other programs, checked before a table adds them (spec: Column Projection)."""
