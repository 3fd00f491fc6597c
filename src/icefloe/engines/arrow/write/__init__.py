"""Data files written in this process."""
