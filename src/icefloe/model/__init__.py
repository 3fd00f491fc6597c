"""The format as values: types, schemas, partitioning, snapshots, table metadata and entries, and no input or output.

Every other layer speaks in these nouns, which are the spec's own. Start with ``types``, ``schema`` and ``entries``.
"""
