"""Table metadata, schemas, snapshots, expressions and scan tasks as JSON (spec: Appendix C: JSON serialization)."""
