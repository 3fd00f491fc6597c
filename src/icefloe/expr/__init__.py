"""Row filters: expressions as values, parsing, binding to a schema, and their two evaluations.

``nodes`` are the expressions, ``text`` parses them from SQL and ``printing`` prints them, ``bind`` resolves them
against a schema, ``stats_eval`` answers for whole files from statistics (spec: Scan Planning) and ``row_filter``
answers for rows.
"""
