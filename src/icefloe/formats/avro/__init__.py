"""Avro data files: reading and writing (spec: Appendix A, Avro)."""
