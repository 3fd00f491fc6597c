"""Schema evolution: its steps, its rules, and all schemas of a table (spec: Schema Evolution)."""
