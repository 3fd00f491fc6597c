"""Filters: expressions, binding to a schema, and evaluation on rows."""
