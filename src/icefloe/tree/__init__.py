"""The metadata tree of a snapshot: a root, its leaves, and the live entries in them, for every format version.

A v1 to v3 manifest list is a root whose rows are all manifests; only the codecs know the difference.
"""
