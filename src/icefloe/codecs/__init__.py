"""Bytes to values and back: metadata as JSON, manifests as Avro and Parquet, Puffin files, deletion vectors."""
