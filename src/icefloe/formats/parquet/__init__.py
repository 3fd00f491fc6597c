"""Parquet data files: reading, writing, statistics (spec: Appendix A, Parquet)."""
