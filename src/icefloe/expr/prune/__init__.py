"""Filters evaluated on statistics and partition values: which files can hold matching rows (spec: Scan Planning)."""
