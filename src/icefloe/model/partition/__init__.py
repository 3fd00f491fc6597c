"""Partition specs and sort orders, and how they evolve (spec: Partitioning, Sorting)."""
