"""How a table changes: a frozen intent, staged on a fresh base and swapped in, or tried again on a newer one."""
