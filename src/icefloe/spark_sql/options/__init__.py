"""Options of reads, of writes, and of the branches and tags that CALL creates."""
