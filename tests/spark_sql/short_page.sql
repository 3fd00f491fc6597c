-- The essentials of Spark SQL on tables, for short_page.py. The setting page.version is the format version of the tables.

-- Names, and tables with partitions.
CREATE NAMESPACE demo.shop COMMENT 'orders and customers';
CREATE TABLE demo.shop.orders (
  id bigint NOT NULL COMMENT 'the key',
  customer struct<name: string, city: string>,
  tags array<string>,
  price decimal(10, 2),
  day date)
USING icefloe
PARTITIONED BY (days(day), bucket(2, id))
TBLPROPERTIES ('format-version' = '${page.version}');
SHOW TABLES IN demo.shop;
--> shop | orders | false
DESCRIBE demo.shop.orders;
--> id | bigint | the key
--> customer | struct<name:string,city:string> | NULL
--> tags | array<string> | NULL
--> price | decimal(10,2) | NULL
--> day | date | NULL
-->  |  |
--> # Partitioning |  |
--> Part 0 | days(day) |
--> Part 1 | bucket(2, id) |
INSERT INTO demo.shop.orders VALUES
  (1, named_struct('name', 'Ann', 'city', 'Oslo'), array('a', 'b'), 10.50, date'2026-01-01'),
  (2, named_struct('name', 'Bob', 'city', 'Rome'), array(), 20.00, date'2026-01-01'),
  (3, NULL, NULL, NULL, date'2026-01-02');
INSERT INTO demo.shop.orders BY NAME SELECT date'2026-01-02' AS day, 4L AS id, 40.0 AS price;
INSERT INTO demo.shop.orders VALUES (NULL, NULL, NULL, NULL, NULL);
--! SparkRuntimeException: [NOT_NULL_ASSERT_VIOLATION]

-- Queries.
SELECT * FROM demo.shop.orders ORDER BY id;
--> 1 | {Ann, Oslo} | [a, b] | 10.50 | 2026-01-01
--> 2 | {Bob, Rome} | [] | 20.00 | 2026-01-01
--> 3 | NULL | NULL | NULL | 2026-01-02
--> 4 | NULL | NULL | 40.00 | 2026-01-02
SELECT customer.city, tags[0] FROM demo.shop.orders WHERE day = date'2026-01-01' AND customer.name LIKE 'A%';
--> Oslo | a
SELECT a.id, b.id FROM demo.shop.orders a JOIN demo.shop.orders b ON a.id = b.id + 1 AND a.day = b.day ORDER BY 1;
--> 2 | 1
--> 4 | 3
SELECT day, count(*), sum(price) FROM demo.shop.orders GROUP BY day ORDER BY day;
--> 2026-01-01 | 2 | 30.50
--> 2026-01-02 | 2 | 40.00
SELECT endswith(_file, '.parquet'), _pos, _spec_id, _partition FROM demo.shop.orders WHERE id = 4;
--> true | 0 | 0 | {2026-01-02, 0}
SELECT operation, summary['added-records'] FROM demo.shop.orders.snapshots ORDER BY committed_at;
--> append | 3
--> append | 1

-- Procedures, time travel, branches.
CALL demo.system.create_branch('shop.orders', 'audit');
--> audit | *
CALL demo.system.create_tag(table => 'shop.orders', tag => 'v1');
--> v1 | *
SELECT name, type FROM demo.shop.orders.refs ORDER BY name;
--> audit | BRANCH
--> main | BRANCH
--> v1 | TAG
INSERT INTO demo.shop.orders.branch_audit (id, day) VALUES (5, date'2026-01-03');
SELECT count(*) FROM demo.shop.orders VERSION AS OF 'audit';
--> 5
SELECT count(*) FROM demo.shop.orders;
--> 4

-- Overwrites, of the table, of rows and of partitions.
INSERT INTO demo.shop.orders REPLACE WHERE day = date'2026-01-02' SELECT 6, NULL, NULL, 60, date'2026-01-02';
SET spark.sql.sources.partitionOverwriteMode = dynamic;
--> spark.sql.sources.partitionOverwriteMode | dynamic
INSERT OVERWRITE demo.shop.orders SELECT 6, NULL, NULL, 66, date'2026-01-02';
RESET spark.sql.sources.partitionOverwriteMode;
SELECT id, price FROM demo.shop.orders ORDER BY id;
--> 1 | 10.50
--> 2 | 20.00
--> 6 | 66.00
INSERT OVERWRITE demo.shop.orders SELECT id + 10, customer, tags, price, day FROM demo.shop.orders VERSION AS OF 'v1';
SELECT id FROM demo.shop.orders ORDER BY id;
--> 11
--> 12
--> 13
--> 14
SELECT count(*) FROM demo.shop.orders TIMESTAMP AS OF current_timestamp();
--> 4

-- Changes of rows. The first DELETE is a filter; Spark finds the rows of the second.
UPDATE demo.shop.orders SET price = price + 1, customer.city = 'Bergen' WHERE id % 10 = 1;
DELETE FROM demo.shop.orders WHERE day = date'2026-01-01' AND id = 12;
DELETE FROM demo.shop.orders WHERE id IN (SELECT id + 10 FROM demo.shop.orders VERSION AS OF 'v1' WHERE price = 40);
SELECT * FROM demo.shop.orders ORDER BY id;
--> 11 | {Ann, Bergen} | [a, b] | 11.50 | 2026-01-01
--> 13 | NULL | NULL | NULL | 2026-01-02
INSERT INTO demo.shop.orders (id, price, day) VALUES (14, 14, date'2026-01-01'), (15, 15, date'2026-01-02');
MERGE INTO demo.shop.orders AS t
USING (SELECT * FROM VALUES (11L, 0), (13L, 130), (16L, 160), (17L, 0) AS s (id, price)) AS s
ON t.id = s.id
WHEN MATCHED AND s.price = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET price = s.price
WHEN NOT MATCHED AND s.price > 0 THEN INSERT (id, price, day) VALUES (s.id, s.price, date'2026-01-03')
WHEN NOT MATCHED BY SOURCE AND t.id = 14 THEN UPDATE SET price = -14
WHEN NOT MATCHED BY SOURCE THEN DELETE;
SELECT id, price, day FROM demo.shop.orders ORDER BY id;
--> 13 | 130.00 | 2026-01-02
--> 14 | -14.00 | 2026-01-01
--> 16 | 160.00 | 2026-01-03
MERGE INTO demo.shop.orders t USING (SELECT id + 1 AS id, day FROM demo.shop.orders) s ON t.id = s.id
WHEN NOT MATCHED THEN INSERT (id, day) VALUES (s.id, s.day);
MERGE INTO demo.shop.orders t USING (SELECT 13L AS id UNION ALL SELECT 13L) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET price = 0;
--! SparkRuntimeException: [MERGE_CARDINALITY_VIOLATION]
MERGE WITH SCHEMA EVOLUTION INTO demo.shop.orders t USING (SELECT 13L AS id, 'late' AS note) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET *;
SELECT id, price, note FROM demo.shop.orders ORDER BY id;
--> 13 | 130.00 | late
--> 14 | -14.00 | NULL
--> 15 | NULL | NULL
--> 16 | 160.00 | NULL
--> 17 | NULL | NULL

-- Changes of tables.
ALTER TABLE demo.shop.orders ADD COLUMNS (customer.age int FIRST, rank int AFTER id);
ALTER TABLE demo.shop.orders ALTER COLUMN rank TYPE bigint;
ALTER TABLE demo.shop.orders RENAME COLUMN note TO remark;
ALTER TABLE demo.shop.orders DROP COLUMN tags;
ALTER TABLE demo.shop.orders SET TBLPROPERTIES ('team' = 'sales');
SHOW TBLPROPERTIES demo.shop.orders ('team');
--> team | sales
SHOW COLUMNS IN demo.shop.orders;
--> id
--> rank
--> customer
--> price
--> day
--> remark
SELECT * FROM demo.shop.orders WHERE remark IS NOT NULL;
--> 13 | NULL | NULL | 130.00 | 2026-01-02 | late
CREATE TABLE demo.shop.copy PARTITIONED BY (truncate(1, remark))
TBLPROPERTIES ('format-version' = '${page.version}')
AS SELECT id, remark FROM demo.shop.orders;
CREATE OR REPLACE TABLE demo.shop.copy TBLPROPERTIES ('format-version' = '${page.version}')
AS SELECT id * 2 AS twice FROM demo.shop.copy WHERE remark IS NULL;
SELECT twice FROM demo.shop.copy ORDER BY twice;
--> 28
--> 30
--> 32
--> 34

-- Defaults of columns and ids of rows, from format version 3 on.
CREATE TABLE demo.shop.numbers (id int, n int DEFAULT 7) TBLPROPERTIES ('format-version' = '4');
INSERT INTO demo.shop.numbers (id) VALUES (1);
ALTER TABLE demo.shop.numbers ADD COLUMN m int DEFAULT 8;
ALTER TABLE demo.shop.numbers ALTER COLUMN n SET DEFAULT 9;
INSERT INTO demo.shop.numbers (id) VALUES (2);
UPDATE demo.shop.numbers SET m = m + 1 WHERE id = 1;
SELECT *, _row_id FROM demo.shop.numbers ORDER BY id;
--> 1 | 7 | 9 | 0
--> 2 | 9 | 8 | 1

-- Names again.
ALTER TABLE demo.shop.copy RENAME TO demo.shop.second;
TRUNCATE TABLE demo.shop.second;
SELECT count(*) FROM demo.shop.second;
--> 0
DROP TABLE demo.shop.orders PURGE;
SELECT * FROM demo.shop.orders;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
DROP NAMESPACE demo.shop;
--! AnalysisException: [SCHEMA_NOT_EMPTY]
DROP NAMESPACE demo.shop CASCADE;
