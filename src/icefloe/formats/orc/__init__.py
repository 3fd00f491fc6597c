"""ORC data files: reading, writing, statistics (spec: Appendix A, ORC)."""
