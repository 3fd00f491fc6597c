"""Planned files read in this process."""
