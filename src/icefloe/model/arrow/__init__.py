"""The format's types and schemas as Arrow's, and user data conformed to a table (spec: Schemas and Data Types)."""
