"""What ORC files say beside their rows: attributes of types, and the ends of files (spec: Appendix A, ORC)."""
