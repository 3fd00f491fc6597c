"""Which rows of which data files are gone: matching delete files to data files, and deletion vectors."""
