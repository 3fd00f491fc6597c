"""Servers that tests start by themselves, and the Spark session."""
