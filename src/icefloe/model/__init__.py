"""The format as values, without I/O: types, schemas, partitioning, snapshots, table metadata and entries.

Names are those of the spec. Start with ``schema/types.py``, ``schema/schema.py`` and ``entries.py``.
"""
