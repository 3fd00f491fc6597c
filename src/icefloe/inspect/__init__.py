"""Shows the metadata of a table to people."""
