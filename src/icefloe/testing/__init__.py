"""Test tools: counting and faulty storage, a scheduler of threads, suites for catalogs and storage."""
