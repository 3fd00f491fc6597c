-- UPDATE, DELETE and TRUNCATE.

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

-- UPDATE by a subquery on another table, and of a field of a struct.
CREATE TABLE demo.db.people (id bigint, at struct<city: string, zip: int>);
INSERT INTO demo.db.people VALUES (1, named_struct('city', 'Oslo', 'zip', 1)), (2, named_struct('city', 'Rome', 'zip', 2));
UPDATE demo.db.people SET at.zip = at.zip + 100 WHERE id IN (SELECT n / 15 FROM demo.db.t);
SELECT * FROM demo.db.people ORDER BY id;
--> 1 | {Oslo, 1}
--> 2 | {Rome, 102}
UPDATE demo.db.people SET absent = 1;
--! AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION]
DELETE FROM demo.db.people WHERE EXISTS (SELECT 1 FROM demo.db.t WHERE t.id > people.id + 1);
SELECT id FROM demo.db.people;
--> 2
UPDATE demo.db.t SET id = NULL;
--! SparkRuntimeException: [NOT_NULL_ASSERT_VIOLATION]

TRUNCATE TABLE demo.db.t;
SELECT count(*) FROM demo.db.t;
--> 0

-- Tables with deletion vectors (version 3), and with data files that are rewritten, give the same rows.
CREATE TABLE demo.db.vectors (id bigint) TBLPROPERTIES (
  'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read');
INSERT INTO demo.db.vectors SELECT id FROM range(0, 6, 1, 1);
DELETE FROM demo.db.vectors WHERE id % 3 = 1;
UPDATE demo.db.vectors SET id = id * 10 WHERE id > 3;
SELECT id, _row_id FROM demo.db.vectors ORDER BY id;
--> 0 | 0
--> 2 | 2
--> 3 | 3
--> 50 | 5
