"""Spark SQL on the tables of a catalog: a catalog of Spark whose work is done in Python."""
