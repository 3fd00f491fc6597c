"""Manifest entries for the tests of codecs: fixed ones and random ones."""
