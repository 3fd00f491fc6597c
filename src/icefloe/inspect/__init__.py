"""Looking at a table without changing it: what its metadata holds, for people."""
