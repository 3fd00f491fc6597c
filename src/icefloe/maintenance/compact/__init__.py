"""Compaction: plans which data files to rewrite, rewrites them in groups, and removes deletes that are not needed."""
