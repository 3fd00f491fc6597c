"""Avro container files and schemas (spec: Appendix A, Avro)."""
