"""DataFrames written as data files."""
