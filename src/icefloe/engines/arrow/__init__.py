"""The in-process engine: rows as Arrow record batches, with no JVM."""
