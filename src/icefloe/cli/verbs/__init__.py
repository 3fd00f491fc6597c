"""The verbs of the command line, by subject; each calls the Python API and returns what to print."""
