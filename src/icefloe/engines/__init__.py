"""What moves the rows: each engine reads planned files and writes new ones. None of them commits."""
