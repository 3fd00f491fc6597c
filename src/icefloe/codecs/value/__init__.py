"""Values and columns of values as bytes (spec: Binary single-value serialization)."""
