"""Puffin files, deletion vectors and statistics files (Puffin spec)."""
