"""Benches that answer the questions which the authors of the V4 proposal left open.

Each module has the form of the other benches and two names more: ``QUESTION``, and ``answer``, which builds the
paragraph of the results page from the figures. Data files do not exist unless a bench says otherwise.
"""
