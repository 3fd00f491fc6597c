"""A table at another location: planned, its files copied or rewritten, and the catalog entry switched to it."""
