"""ORC types and the ends of ORC files (spec: Appendix A, ORC)."""
