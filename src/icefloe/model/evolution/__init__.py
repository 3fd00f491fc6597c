"""Schema evolution: its steps, its rules, and the schemas a table has had (spec: Schema Evolution)."""
