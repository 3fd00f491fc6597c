-- Names: catalogs, namespaces and tables.

CREATE NAMESPACE demo.db COMMENT 'orders and customers' WITH DBPROPERTIES (team = 'ops');
CREATE NAMESPACE IF NOT EXISTS demo.db;
CREATE NAMESPACE demo.db;
--! AnalysisException: [SCHEMA_ALREADY_EXISTS]
ALTER NAMESPACE demo.db SET PROPERTIES (team = 'sales', floor = '3');
ALTER NAMESPACE demo.db UNSET PROPERTIES (floor);
DESCRIBE NAMESPACE EXTENDED demo.db;
--> Catalog Name | demo
--> Namespace Name | db
--> Comment | orders and customers
--> Owner | *
--> Properties | ((team,sales))
--iceberg [namespace-location]: its catalog shows a location
--iceberg> Catalog Name | demo
--iceberg> Namespace Name | db
--iceberg> Comment | orders and customers
--iceberg> Location | file:*/demo/db
--iceberg> Owner | *
--iceberg> Properties | ((team,sales))
CREATE NAMESPACE demo.db.inner;
SHOW NAMESPACES IN demo;
--> db
SHOW NAMESPACES IN demo.db;
--> db.inner
SHOW NAMESPACES IN demo LIKE 'x*';
DROP NAMESPACE demo.db.inner;
USE demo.db;
SELECT current_catalog(), current_schema();
--> demo | db

CREATE TABLE orders (id bigint);
CREATE TABLE orders (id bigint);
--! AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS]
CREATE TABLE IF NOT EXISTS demo.db.orders (other string);
SHOW TABLES IN demo.db;
--> db | orders | false
SHOW TABLES IN demo.db LIKE 'x*';
INSERT INTO orders VALUES (1);
ALTER TABLE orders RENAME TO demo.db.sales;
--iceberg [rename-with-catalog]: the new name must not have the name of the catalog
--iceberg! Namespace does not exist: demo.db
--iceberg; ALTER TABLE orders RENAME TO db.sales
SELECT * FROM demo.db.sales;
--> 1
SELECT * FROM demo.db.orders;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
SELECT * FROM demo.other.orders;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
SHOW TABLES IN demo.other;
--! AnalysisException: [SCHEMA_NOT_FOUND]
--iceberg [namespace-errors]: the error is that of its catalog
--iceberg! NoSuchNamespaceException
USE demo.other;
--! AnalysisException: [SCHEMA_NOT_FOUND]
SELECT * FROM demo.db.SALES;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
CREATE TABLE demo.db.events (id bigint);
ALTER TABLE demo.db.events RENAME TO db.sales;
--! AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS]
ALTER TABLE demo.db.absent RENAME TO db.events;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
DROP TABLE demo.db.events;

-- Names of columns and tables may have spaces; the last part of a name may have dots.
CREATE TABLE demo.db.`my orders.v1` (`order id` bigint) PARTITIONED BY (bucket(2, `order id`));
INSERT INTO demo.db.`my orders.v1` VALUES (7);
SELECT `order id` FROM demo.db.`my orders.v1` WHERE `order id` = 7;
--> 7
SHOW TABLES IN demo.db;
--> db | my orders.v1 | false
--> db | sales | false

-- Several catalogs in one statement.
CREATE TABLE other.db.customers AS SELECT 1L AS id, 'Ann' AS name;
SELECT s.id, c.name FROM demo.db.sales s JOIN other.db.customers c ON s.id = c.id;
--> 1 | Ann
INSERT INTO demo.db.sales SELECT id + 1 FROM other.db.customers;
SELECT * FROM sales ORDER BY id;
--> 1
--> 2
SHOW CATALOGS LIKE 'demo';
--> demo
USE other.db;
SHOW TABLES;
--> db | customers | false
SELECT * FROM sales;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
USE demo.db;

-- What a table is.
CREATE TABLE demo.db.visits (id bigint NOT NULL COMMENT 'the key', city string, at timestamp)
PARTITIONED BY (days(at), bucket(4, id)) COMMENT 'all visits' TBLPROPERTIES ('team' = 'sales');
DESCRIBE EXTENDED demo.db.visits;
--> id | bigint | the key
--> city | string | NULL
--> at | timestamp | NULL
-->  |  |
--> # Partitioning |  |
--> Part 0 | days(at) |
--> Part 1 | bucket(4, id) |
-->  |  |
--> # Metadata Columns |  |
--> _spec_id | int | *
--> _partition | struct<at_day:date,id_bucket:int> | *
--> _file | string | *
--> _pos | bigint | *
-->  |  |
--> # Detailed Table Information |  |
--> Name | demo.db.visits |
--> Type | MANAGED |
--> Comment | all visits |
--> Location | file:*/demo/db/visits |
--> Provider | icefloe |
--> Owner | * |
--> Table Properties | [current-snapshot-id=none,format=iceberg/parquet,format-version=2,team=sales] |
--> Statistics | 0 bytes | NULL
--iceberg [table-description]: another provider, metadata column, table type and stored property, and the number of rows
--iceberg> id | bigint | the key
--iceberg> city | string | NULL
--iceberg> at | timestamp | NULL
--iceberg>  |  |
--iceberg> # Partitioning |  |
--iceberg> Part 0 | days(at) |
--iceberg> Part 1 | bucket(4, id) |
--iceberg>  |  |
--iceberg> # Metadata Columns |  |
--iceberg> _spec_id | int |
--iceberg> _partition | struct<at_day:date,id_bucket:int> |
--iceberg> _file | string |
--iceberg> _pos | bigint |
--iceberg> _deleted | boolean |
--iceberg>  |  |
--iceberg> # Detailed Table Information |  |
--iceberg> Name | demo.db.visits |
--iceberg> Type | MANAGED |
--iceberg> Comment | all visits |
--iceberg> Location | file:*/demo/db/visits |
--iceberg> Provider | iceberg |
--iceberg> Owner | * |
--iceberg> Table_type | EXTERNAL |
--iceberg> Table Properties | [current-snapshot-id=none,format=iceberg/parquet,format-version=2,team=sales,write.parquet.compression-codec=zstd] |
--iceberg> Statistics | 0 bytes, 0 rows | NULL
DESCRIBE demo.db.visits id;
--> col_name | id
--> data_type | bigint
--> comment | the key
SHOW CREATE TABLE demo.db.visits;
--> CREATE TABLE demo.db.visits ( id BIGINT NOT NULL COMMENT 'the key', city STRING, at TIMESTAMP) USING icefloe PARTITIONED BY (days(at), bucket(4, id)) COMMENT 'all visits' LOCATION 'file:*/demo/db/visits' TBLPROPERTIES ( 'current-snapshot-id' = 'none', 'format' = 'iceberg/parquet', 'format-version' = '2', 'team' = 'sales')
--iceberg [table-description]: another provider and stored property
--iceberg> CREATE TABLE demo.db.visits ( id BIGINT NOT NULL COMMENT 'the key', city STRING, at TIMESTAMP) USING iceberg PARTITIONED BY (days(at), bucket(4, id)) COMMENT 'all visits' LOCATION 'file:*/demo/db/visits' TBLPROPERTIES ( 'current-snapshot-id' = 'none', 'format' = 'iceberg/parquet', 'format-version' = '2', 'team' = 'sales', 'write.parquet.compression-codec' = 'zstd')
SHOW TBLPROPERTIES demo.db.visits;
--> current-snapshot-id | none
--> format | iceberg/parquet
--> format-version | 2
--> team | sales
--iceberg [table-description]: another stored property
--iceberg> current-snapshot-id | none
--iceberg> format | iceberg/parquet
--iceberg> format-version | 2
--iceberg> team | sales
--iceberg> write.parquet.compression-codec | zstd
SHOW TBLPROPERTIES demo.db.visits ('team');
--> team | sales
SHOW COLUMNS IN demo.db.visits;
--> id
--> city
--> at
SHOW PARTITIONS demo.db.visits;
--! AnalysisException: [INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED]

-- Views and functions of a catalog. (Temporary views work.)
CREATE VIEW demo.db.cities AS SELECT DISTINCT city FROM demo.db.visits;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]
--iceberg [views]: views are stored in the catalog
--iceberg; DROP VIEW demo.db.cities
SELECT demo.system.bucket(4, 10);
--! AnalysisException: [MISSING_CATALOG_ABILITY.FUNCTIONS]
--iceberg [functions]: transforms are functions of the catalog
--iceberg> *

-- DROP TABLE keeps the files, DROP TABLE PURGE deletes them. A namespace with tables is dropped by CASCADE.
DROP TABLE demo.db.`my orders.v1` PURGE;
DROP TABLE demo.db.visits;
DROP TABLE IF EXISTS demo.db.nothing;
DROP TABLE demo.db.nothing;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
DROP NAMESPACE demo.db;
--! AnalysisException: [SCHEMA_NOT_EMPTY]
--iceberg [namespace-errors]: the error is that of its catalog
--iceberg! NamespaceNotEmptyException
DROP NAMESPACE demo.db CASCADE;
--iceberg [drop-cascade]: tables have to be dropped before
--iceberg! NamespaceNotEmptyException
--iceberg; DROP TABLE demo.db.sales
--iceberg; DROP NAMESPACE demo.db
SHOW NAMESPACES IN demo;
DROP NAMESPACE IF EXISTS demo.db;
DROP NAMESPACE demo.db;
--! AnalysisException: [SCHEMA_NOT_FOUND]
