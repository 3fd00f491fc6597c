"""Streams of Spark that read and write tables."""
