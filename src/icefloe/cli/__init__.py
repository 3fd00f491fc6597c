"""The command line ``icefloe``: one verb for each capability, with the words of the Python API."""
