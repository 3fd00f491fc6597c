-- INSERT: by position, by name, into some columns; INSERT OVERWRITE of all rows or of partitions.

CREATE TABLE demo.db.t (id bigint NOT NULL, city string, n int) PARTITIONED BY (city);
INSERT INTO demo.db.t VALUES (1, 'Oslo', 10), (2, 'Rome', 20);
INSERT INTO demo.db.t BY NAME SELECT 30 AS n, 3L AS id, 'Rome' AS city;
INSERT INTO demo.db.t (id, n) VALUES (4, 40);
INSERT INTO demo.db.t PARTITION (city = 'Oslo') VALUES (5, 50);
SELECT * FROM demo.db.t ORDER BY id;
--> 1 | Oslo | 10
--> 2 | Rome | 20
--> 3 | Rome | 30
--> 4 | NULL | 40
--> 5 | Oslo | 50
INSERT INTO demo.db.t VALUES (NULL, 'Oslo', 1);
--! SparkRuntimeException: [NOT_NULL_ASSERT_VIOLATION]
INSERT INTO demo.db.t VALUES ('six', 'Oslo', 1);
--! AnalysisException: [INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST]
SELECT count(*) FROM demo.db.t;
--> 5

-- A static partition replaces the rows of that partition; without one all rows are replaced.
INSERT OVERWRITE demo.db.t PARTITION (city = 'Rome') SELECT 6, 60;
SELECT id FROM demo.db.t ORDER BY id;
--> 1
--> 4
--> 5
--> 6
INSERT OVERWRITE demo.db.t SELECT id, city, n + 1 FROM demo.db.t WHERE city = 'Oslo';
SELECT * FROM demo.db.t ORDER BY id;
--> 1 | Oslo | 11
--> 5 | Oslo | 51

-- REPLACE WHERE replaces the rows for which a condition is true.
INSERT INTO demo.db.t VALUES (6, 'Rome', 60);
INSERT INTO demo.db.t REPLACE WHERE city = 'Rome' SELECT 7, 'Rome', 70;
SELECT id FROM demo.db.t ORDER BY id;
--> 1
--> 5
--> 7
INSERT INTO demo.db.t REPLACE WHERE n > 50 AND city = 'Oslo' SELECT 7, 'Oslo', 71;
--iceberg [replace-where-rows]: a data file in which some rows match is not rewritten
--iceberg! some, but not all, rows match
--iceberg; INSERT INTO demo.db.t REPLACE WHERE city = 'Oslo' SELECT * FROM VALUES (1, 'Oslo', 11), (7, 'Oslo', 71)
SELECT id, n FROM demo.db.t ORDER BY n;
--> 1 | 11
--> 7 | 70
--> 7 | 71

-- With dynamic overwrite, the partitions of the new rows are replaced.
INSERT INTO demo.db.t VALUES (8, 'Bern', 80);
SET spark.sql.sources.partitionOverwriteMode = dynamic;
--> spark.sql.sources.partitionOverwriteMode | dynamic
INSERT OVERWRITE demo.db.t VALUES (9, 'Oslo', 90);
INSERT OVERWRITE demo.db.t PARTITION (city) SELECT 10, 'Rome', 100;
RESET spark.sql.sources.partitionOverwriteMode;
SELECT id, city FROM demo.db.t ORDER BY id;
--> 8 | Bern
--> 9 | Oslo
--> 10 | Rome
TRUNCATE TABLE demo.db.t;
SELECT count(*) FROM demo.db.t;
--> 0

-- Columns by name: their order in the query is free, and those that are left out are null.
CREATE TABLE demo.db.wide (id bigint, note string, size struct<w: int, h: int>);
INSERT INTO demo.db.wide BY NAME SELECT named_struct('h', 2, 'w', 1) AS size, 1L AS id;
INSERT INTO demo.db.wide BY NAME SELECT 2L AS id, 3 AS colour;
--! AnalysisException: [INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS]
INSERT INTO demo.db.wide VALUES (3, 'c', named_struct('w', 5, 'h', 6)), (4, NULL, NULL);
SELECT * FROM demo.db.wide ORDER BY id;
--> 1 | NULL | {1, 2}
--> 3 | c | {5, 6}
--> 4 | NULL | NULL
INSERT OVERWRITE demo.db.wide BY NAME SELECT 9L AS id;
SELECT * FROM demo.db.wide;
--> 9 | NULL | NULL
INSERT INTO demo.db.wide VALUES (1);
--! AnalysisException: [INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS]
INSERT INTO demo.db.absent VALUES (1);
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
