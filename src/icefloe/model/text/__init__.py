"""Schemas, partitioning, sort orders and literals as text: DDL, SQL and Spark's schema JSON."""
