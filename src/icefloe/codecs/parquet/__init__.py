"""Parquet pages and partition statistics files (spec: Appendix A, Parquet)."""
