"""The Spark engine: Spark's own reader, writer and joins move the rows. The only package that imports pyspark."""
