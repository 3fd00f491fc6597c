"""Types, schemas, reserved columns, default values and name mappings (spec: Schemas and Data Types)."""
