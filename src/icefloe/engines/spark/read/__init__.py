"""Snapshots as Spark DataFrames."""
