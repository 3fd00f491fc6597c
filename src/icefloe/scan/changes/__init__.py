"""Plans the changes between two snapshots: which files to read, and which of their rows changed."""
