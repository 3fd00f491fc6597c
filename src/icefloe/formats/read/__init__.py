"""Reading data files of any format in terms of the table's schema (spec: Column Projection; Scan Planning)."""
