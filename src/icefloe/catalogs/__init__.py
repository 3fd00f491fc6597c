"""Catalogs: names of tables and, for each, the pointer that a commit swaps."""
