"""Random histories of one table, compared with a plain list of rows after every step."""
