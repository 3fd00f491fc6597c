-- MERGE.

CREATE TABLE demo.db.t (id bigint NOT NULL, city string, n int);
INSERT INTO demo.db.t VALUES (3, NULL, 30), (5, 'Lima', 50), (6, 'Kiew', 60), (7, 'Lyon', 70);

-- Several clauses: the first whose condition is true applies.
MERGE INTO demo.db.t AS t
USING (SELECT * FROM VALUES (5L, 'Lima', 500), (6L, NULL, NULL), (8L, 'Nara', 80), (9L, 'Turku', NULL) AS s (id, city, n)) AS s
ON t.id = s.id
WHEN MATCHED AND s.n IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED AND s.n IS NOT NULL THEN INSERT *
WHEN NOT MATCHED BY SOURCE AND t.n = 70 THEN UPDATE SET n = 71
WHEN NOT MATCHED BY SOURCE AND t.n = 30 THEN DELETE;
SELECT * FROM demo.db.t ORDER BY id;
--> 5 | Lima | 500
--> 7 | Lyon | 71
--> 8 | Nara | 80
MERGE INTO demo.db.t USING (SELECT 8L AS id UNION ALL SELECT 8L) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 0;
--! SparkRuntimeException: [MERGE_CARDINALITY_VIOLATION]

-- Only NOT MATCHED clauses.
MERGE INTO demo.db.t USING (SELECT id + 1 AS id, city FROM demo.db.t) AS s ON t.id = s.id
WHEN NOT MATCHED THEN INSERT (id, city) VALUES (s.id, s.city);
SELECT * FROM demo.db.t ORDER BY id;
--> 5 | Lima | 500
--> 6 | Lima | NULL
--> 7 | Lyon | 71
--> 8 | Nara | 80
--> 9 | Nara | NULL

-- New columns of the source.
MERGE WITH SCHEMA EVOLUTION INTO demo.db.t USING (SELECT 9L AS id, 'Nara' AS city, 90 AS n, 'new' AS note) AS s
ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM demo.db.t WHERE n IS NOT NULL ORDER BY id;
--> 5 | Lima | 500 | NULL
--> 7 | Lyon | 71 | NULL
--> 8 | Nara | 80 | NULL
--> 9 | Nara | 90 | new

-- Several rows of the source may delete the same row.
MERGE INTO demo.db.t USING (SELECT 9L AS id UNION ALL SELECT 9L) AS s ON t.id = s.id WHEN MATCHED THEN DELETE;
SELECT id, n FROM demo.db.t WHERE n IS NOT NULL ORDER BY id;
--> 5 | 500
--> 7 | 71
--> 8 | 80

-- All rows that match, and all that do not.
MERGE INTO demo.db.t AS t USING (SELECT 5L AS id) AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET t.city = concat(t.city, '!'), n = DEFAULT
WHEN NOT MATCHED BY SOURCE THEN DELETE;
SELECT id, city, n FROM demo.db.t;
--> 5 | Lima! | NULL
MERGE INTO demo.db.t USING demo.db.absent AS s ON t.id = s.id WHEN MATCHED THEN DELETE;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]

-- Fields of structs: those that only the source has are added, and rows without them have null.
CREATE TABLE demo.db.nested (id bigint, at struct<x: int>);
INSERT INTO demo.db.nested VALUES (1, named_struct('x', 1));
MERGE WITH SCHEMA EVOLUTION INTO demo.db.nested AS t USING (SELECT 2L AS id, named_struct('x', 2, 'y', 3) AS at) AS s
ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM demo.db.nested ORDER BY id;
--> 1 | {1, NULL}
--> 2 | {2, 3}
MERGE INTO demo.db.nested AS t USING (SELECT 1L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET at.y = 9;
SELECT * FROM demo.db.nested WHERE id = 1;
--> 1 | {1, 9}
