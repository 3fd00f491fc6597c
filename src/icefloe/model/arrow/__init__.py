"""Iceberg types and schemas in Arrow; user data cast to a table schema (spec: Schemas and Data Types)."""
