"""How a table changes: frozen operations, applied to the current table and swapped in, or tried again."""
