"""Keeping tables healthy: what is reachable, and the removal of what is not wanted any more."""
