"""Rows deleted and upserted on Spark (spec: Row-level Deletes)."""
