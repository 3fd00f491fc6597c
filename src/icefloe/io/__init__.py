"""Reads and writes files by location: the interface between the library and storage."""
