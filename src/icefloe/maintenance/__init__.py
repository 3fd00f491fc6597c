"""Maintenance of tables: reachable files, purge, and tables that were moved."""
