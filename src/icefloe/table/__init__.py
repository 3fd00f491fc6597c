"""The facade that users hold: catalogs, tables, scans and results. Every method delegates to the layers below."""
