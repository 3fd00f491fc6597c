"""Metadata tables: the metadata of a table as Arrow tables, with the columns that Apache Iceberg gives them."""
