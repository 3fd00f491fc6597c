"""Avro records decoded into Arrow columns with numpy, without a Python object per record."""
