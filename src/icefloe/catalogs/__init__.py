"""Catalogs: names of tables and, for each, the one pointer that a commit swaps."""
