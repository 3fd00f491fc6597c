"""The procedures of ``CALL demo.system.*``."""
