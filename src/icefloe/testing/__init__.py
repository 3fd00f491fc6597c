"""Tools for testing icefloe and what is built on it: counting and faulty storage, and suites for implementations."""
