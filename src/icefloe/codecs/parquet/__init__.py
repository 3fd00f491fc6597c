"""Parquet footers and page indexes, and partition statistics files (spec: Appendix A, Parquet)."""
