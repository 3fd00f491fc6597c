"""Checks of a table: its metadata, its files in storage, and the rows in them."""
