-- UPDATE, DELETE and MERGE.

CREATE TABLE demo.db.t (id bigint NOT NULL, city string, n int);
INSERT INTO demo.db.t VALUES (1, 'Oslo', 10), (2, 'Rome', 20), (3, NULL, 30), (4, 'Bern', NULL);
UPDATE demo.db.t SET n = n + 1, city = upper(city) WHERE id < 3;
UPDATE demo.db.t AS x SET n = (SELECT max(n) FROM demo.db.t) WHERE x.N IS NULL;
SELECT * FROM demo.db.t ORDER BY id;
--> 1 | OSLO | 11
--> 2 | ROME | 21
--> 3 | NULL | 30
--> 4 | Bern | 30

-- A DELETE whose condition is a filter reads only the columns of the condition; Spark finds the rows of others.
DELETE FROM demo.db.t WHERE ID = 4 AND city LIKE 'Be%';
DELETE FROM demo.db.t WHERE NOT (city = 'ROME');
DELETE FROM demo.db.t WHERE length(city) = (SELECT count(*) + 3 FROM demo.db.t WHERE n > 25);
SELECT * FROM demo.db.t ORDER BY id;
--> 3 | NULL | 30

-- MERGE: several clauses, the first whose condition is true applies.
INSERT INTO demo.db.t VALUES (5, 'Lima', 50), (6, 'Kiew', 60), (7, 'Lyon', 70);
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

TRUNCATE TABLE demo.db.t;
SELECT count(*) FROM demo.db.t;
--> 0
