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
