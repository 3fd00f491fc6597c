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
INSERT INTO demo.db.t REPLACE WHERE n > 50 AND city = 'Oslo' SELECT 7, 'Oslo', 70;
SELECT id FROM demo.db.t ORDER BY id;
--> 1
--> 7

-- With dynamic overwrite, the partitions of the new rows are replaced.
INSERT INTO demo.db.t VALUES (8, 'Rome', 80);
SET spark.sql.sources.partitionOverwriteMode = dynamic;
INSERT OVERWRITE demo.db.t VALUES (9, 'Oslo', 90);
RESET spark.sql.sources.partitionOverwriteMode;
SELECT id, city FROM demo.db.t ORDER BY id;
--> 8 | Rome
--> 9 | Oslo
TRUNCATE TABLE demo.db.t;
SELECT count(*) FROM demo.db.t;
--> 0

-- Writes go to a branch by its name, and by the setting of Apache Iceberg if the table allows it.
INSERT INTO demo.db.t VALUES (1, 'Oslo', 1);
ALTER TABLE demo.db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true');
SET spark.wap.branch = audit;
INSERT INTO demo.db.t VALUES (2, 'Rome', 2);
SELECT count(*) FROM demo.db.t;
--> 2
RESET spark.wap.branch;
SELECT count(*) FROM demo.db.t;
--> 1
INSERT INTO demo.db.t.branch_audit VALUES (3, 'Rome', 3);
SELECT count(*) FROM demo.db.t VERSION AS OF 'audit';
--> 3
