"""Table metadata, snapshots, refs, properties, and the rules of each format version (spec: Table Metadata)."""
