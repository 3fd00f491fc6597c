"""Data files: Parquet written with field ids and measured from its footer, read by field id through schema changes."""
