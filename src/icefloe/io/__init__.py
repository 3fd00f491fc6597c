"""Reading and writing whole files by location: the seam between the library and storage."""
