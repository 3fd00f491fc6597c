"""Assigns deletes to data files, and reads and writes every kind of delete (spec: Delete Formats)."""
