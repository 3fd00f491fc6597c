-- CREATE TABLE: columns, comments, NOT NULL, partition transforms, properties.

CREATE TABLE demo.db.orders (
  id bigint NOT NULL COMMENT 'the key',
  customer struct<name: string, city: string>,
  tags array<string>,
  price decimal(10, 2),
  day date,
  at timestamp)
USING iceberg
PARTITIONED BY (years(at), bucket(4, id), truncate(3, customer.name), day)
COMMENT 'all orders'
TBLPROPERTIES ('format-version' = '3', 'write.parquet.compression-codec' = 'zstd');
DESCRIBE demo.db.orders;
--> id | bigint | the key
--> customer | struct<name:string,city:string> | NULL
--> tags | array<string> | NULL
--> price | decimal(10,2) | NULL
--> day | date | NULL
--> at | timestamp | NULL
-->  |  |
--> # Partitioning |  |
--> Part 0 | years(at) |
--> Part 1 | bucket(4, id) |
--> Part 2 | truncate(3, customer.name) |
--> Part 3 | day |
SHOW TBLPROPERTIES demo.db.orders ('format-version');
--> format-version | 3
SHOW COLUMNS IN demo.db.orders;
--> id
--> customer
--> tags
--> price
--> day
--> at
INSERT INTO demo.db.orders (price) VALUES (1);
--! AnalysisException: [INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA]

-- The other transforms.
CREATE TABLE demo.db.times (a timestamp, b timestamp, c timestamp_ntz) PARTITIONED BY (months(a), days(b), hours(c));
CREATE TABLE demo.db.wrong (a int) PARTITIONED BY (sqrt(a));
--! AnalysisException: there is no transform 'sqrt'

-- USING is left out, or says iceberg, icefloe or parquet, which mean the same; orc and avro are formats of data files.
CREATE TABLE demo.db.plain (id int);
CREATE TABLE demo.db.parquet (id int) USING parquet;
CREATE TABLE demo.db.own (id int) USING icefloe;
--iceberg [using-icefloe]: the word is ours
--iceberg! Unsupported format in USING: icefloe
CREATE TABLE demo.db.orc (id int) USING orc;
--! AnalysisException: USING orc is not supported
--iceberg [using-formats]: USING is the format of data files
CREATE TABLE demo.db.old (id int) TBLPROPERTIES ('write.format.default' = 'orc');
INSERT INTO demo.db.old VALUES (1);
SELECT id, endswith(_file, '.orc') FROM demo.db.old;
--> 1 | true
CREATE TABLE demo.db.wrong (id int) USING csv;
--! AnalysisException: USING csv is not supported
CREATE TABLE demo.db.wrong2 (id int) TBLPROPERTIES ('format-version' = '9');
--! AnalysisException: 9
CREATE TABLE demo.db.newest (id int) TBLPROPERTIES ('format-version' = '4');
SHOW TBLPROPERTIES demo.db.newest ('format-version');
--> format-version | 4

-- CREATE TABLE AS SELECT takes columns and rows of a query.
CREATE TABLE demo.db.copy PARTITIONED BY (bucket(2, id)) AS SELECT id, id * 2 AS twice FROM range(3);
SELECT * FROM demo.db.copy ORDER BY id;
--> 0 | 0
--> 1 | 2
--> 2 | 4

-- CREATE OR REPLACE and REPLACE change columns, partitioning and rows in one commit. The history stays.
REPLACE TABLE demo.db.copy PARTITIONED BY (name) AS SELECT id, concat('n', id) AS name FROM demo.db.copy WHERE id > 0;
SELECT * FROM demo.db.copy ORDER BY id;
--> 1 | n1
--> 2 | n2
SELECT operation FROM demo.db.copy.snapshots ORDER BY committed_at;
--> append
--> overwrite
DESCRIBE demo.db.copy;
--> id | bigint | NULL
--> name | string | NULL
--> # Partition Information |  |
--> # col_name | data_type | comment
--> name | string | NULL
CREATE OR REPLACE TABLE demo.db.copy (id int NOT NULL, name int) TBLPROPERTIES ('format-version' = '3');
SELECT count(*) FROM demo.db.copy;
--> 0
INSERT INTO demo.db.copy VALUES (5, 50);
SELECT * FROM demo.db.copy;
--> 5 | 50
SELECT count(*) FROM demo.db.copy.snapshots;
--> 4
--iceberg [replace-without-rows]: the table without rows is no snapshot
--iceberg> 3
CREATE OR REPLACE TABLE demo.db.fresh AS SELECT 1 AS one;
SELECT * FROM demo.db.fresh;
--> 1
REPLACE TABLE demo.db.absent AS SELECT 1 AS one;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
CREATE TABLE demo.db.fresh AS SELECT 2 AS one;
--! AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS]
CREATE TABLE IF NOT EXISTS demo.db.fresh AS SELECT 2 AS one;
SELECT * FROM demo.db.fresh;
--> 1

-- Defaults of columns, from format version 3 on.
CREATE TABLE demo.db.ranked (id int, rank int DEFAULT 7) TBLPROPERTIES ('format-version' = '3');
--iceberg [column-defaults]: not implemented
--iceberg; CREATE TABLE demo.db.ranked (id int, rank int) TBLPROPERTIES ('format-version' = '3')
INSERT INTO demo.db.ranked (id) VALUES (1);
SELECT * FROM demo.db.ranked;
--> 1 | 7
--iceberg [column-defaults]: the column has no default
--iceberg> 1 | NULL
