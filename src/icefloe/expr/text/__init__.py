"""Filters from text and back to text, for people and for Spark."""
