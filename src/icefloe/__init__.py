"""icefloe: the Iceberg table format in Python, with its data pipeline on Spark through PySpark."""
