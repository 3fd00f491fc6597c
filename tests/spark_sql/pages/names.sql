-- Namespaces and tables.

CREATE NAMESPACE demo.db COMMENT 'orders and customers';
CREATE NAMESPACE IF NOT EXISTS demo.db;
CREATE NAMESPACE demo.db;
--! AnalysisException: [SCHEMA_ALREADY_EXISTS]
SHOW NAMESPACES IN demo;
--> db
SHOW NAMESPACES IN demo LIKE 'x*';
DESCRIBE NAMESPACE demo.db;
ALTER NAMESPACE demo.db SET PROPERTIES (team = 'sales');
USE demo.db;
SELECT current_catalog(), current_schema();
--> demo | db

CREATE TABLE orders (id bigint);
CREATE TABLE orders (id bigint);
--! AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS]
CREATE TABLE IF NOT EXISTS demo.db.orders (other string);
SHOW TABLES IN demo.db;
--> db | orders | false
INSERT INTO orders VALUES (1);
ALTER TABLE orders RENAME TO demo.db.sales;
SELECT * FROM demo.db.sales;
--> 1
SELECT * FROM demo.db.orders;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
SELECT * FROM demo.other.orders;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
SHOW TABLES IN demo.other;
--! AnalysisException: [SCHEMA_NOT_FOUND]

-- Names of columns and tables may have spaces; the last part of a name may have dots.
CREATE TABLE demo.db.`my orders.v1` (`order id` bigint) PARTITIONED BY (bucket(2, `order id`));
INSERT INTO demo.db.`my orders.v1` VALUES (7);
SELECT `order id` FROM demo.db.`my orders.v1` WHERE `order id` = 7;
--> 7
SHOW TABLES IN demo.db;
--> db | my orders.v1 | false
--> db | sales | false

-- DROP TABLE keeps the files, DROP TABLE PURGE deletes them. A namespace with tables is dropped by CASCADE.
DROP TABLE demo.db.`my orders.v1` PURGE;
DROP TABLE IF EXISTS demo.db.nothing;
DROP TABLE demo.db.nothing;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
DROP NAMESPACE demo.db;
--! AnalysisException: [SCHEMA_NOT_EMPTY]
DROP NAMESPACE demo.db CASCADE;
SHOW NAMESPACES IN demo;
DROP NAMESPACE IF EXISTS demo.db;
DROP NAMESPACE demo.db;
--! AnalysisException: [SCHEMA_NOT_FOUND]
