"""The operations that a commit can apply, each a frozen value (spec: Snapshots, Table Metadata)."""
