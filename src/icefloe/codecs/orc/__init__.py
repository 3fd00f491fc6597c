"""ORC footers and types (spec: Appendix A, ORC)."""
