"""Rows deleted, updated, upserted and merged in this process (spec: Row-level Deletes)."""
