-- The statements of Apache Iceberg's page "Spark DDL", in its order. A line such as -- [DROP TABLE] begins a kind.

CREATE TABLE demo.db.another (id bigint, data string, category string, ts timestamp);
INSERT INTO demo.db.another VALUES (1, 'one', 'a', timestamp'2026-01-01 10:00:00'), (2, 'two', 'b', NULL);

-- [CREATE TABLE]
CREATE TABLE demo.db.sample (
    id bigint NOT NULL COMMENT 'unique id',
    data string)
USING iceberg
COMMENT 'a sample';
DESCRIBE demo.db.sample;
--> id | bigint | unique id
--> data | string | NULL
DROP TABLE demo.db.sample;

-- [CREATE TABLE ... LIKE]
CREATE TABLE demo.db.sample LIKE demo.db.another;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'LIKE'

-- [PARTITIONED BY]
CREATE TABLE demo.db.sample (
    id bigint,
    data string,
    category string)
USING iceberg
PARTITIONED BY (category);
DROP TABLE demo.db.sample;
CREATE TABLE demo.db.sample (
    id bigint,
    data string,
    category string,
    ts timestamp)
USING iceberg
PARTITIONED BY (bucket(16, id), days(ts), category);
DESCRIBE demo.db.sample;
--> id | bigint | NULL
--> data | string | NULL
--> category | string | NULL
--> ts | timestamp | NULL
--> |  |
--> # Partitioning |  |
--> Part 0 | bucket(16, id) |
--> Part 1 | days(ts) |
--> Part 2 | category |
DROP TABLE demo.db.sample;
CREATE TABLE demo.db.sample (a timestamp, b timestamp, c timestamp, d timestamp, e timestamp, f timestamp, g int)
PARTITIONED BY (year(a), month(b), day(c), date(d), hour(e), date_hour(f), truncate(10, g));
DESCRIBE demo.db.sample;
--> a | timestamp | NULL
--> b | timestamp | NULL
--> c | timestamp | NULL
--> d | timestamp | NULL
--> e | timestamp | NULL
--> f | timestamp | NULL
--> g | int | NULL
-->  |  |
--> # Partitioning |  |
--> Part 0 | years(a) |
--> Part 1 | months(b) |
--> Part 2 | days(c) |
--> Part 3 | days(d) |
--> Part 4 | hours(e) |
--> Part 5 | hours(f) |
--> Part 6 | truncate(10, g) |
DROP TABLE demo.db.sample;
CREATE TABLE demo.db.sample (a timestamp, b timestamp, c timestamp, d timestamp)
PARTITIONED BY (years(a), months(b), days(c), hours(d));
DROP TABLE demo.db.sample;

-- [CREATE TABLE ... AS SELECT]
CREATE TABLE demo.db.sample
USING iceberg
AS SELECT id, data FROM demo.db.another;
DROP TABLE demo.db.sample;
CREATE TABLE demo.db.sample
USING iceberg
PARTITIONED BY (part)
TBLPROPERTIES ('key'='value')
AS SELECT id, category AS part FROM demo.db.another;
SELECT * FROM demo.db.sample ORDER BY id;
--> 1 | a
--> 2 | b
SHOW TBLPROPERTIES demo.db.sample ('key');
--> key | value

-- [REPLACE TABLE ... AS SELECT]
REPLACE TABLE demo.db.sample
USING iceberg
AS SELECT id, data FROM demo.db.another WHERE id = 1;
SELECT * FROM demo.db.sample;
--> 1 | one
SELECT count(*) FROM demo.db.sample.snapshots;
--> 2
SHOW TBLPROPERTIES demo.db.sample ('key');
--> key | value
REPLACE TABLE demo.db.sample
USING iceberg
PARTITIONED BY (part)
TBLPROPERTIES ('key'='other')
AS SELECT id, category AS part FROM demo.db.another;
SHOW TBLPROPERTIES demo.db.sample ('key');
--> key | other

-- [CREATE OR REPLACE TABLE ... AS SELECT]
CREATE OR REPLACE TABLE demo.db.sample
USING iceberg
AS SELECT id FROM demo.db.another;
SELECT * FROM demo.db.sample ORDER BY id;
--> 1
--> 2

-- [DROP TABLE]
DROP TABLE demo.db.sample;

-- [DROP TABLE ... PURGE]
CREATE TABLE demo.db.sample (id bigint);
DROP TABLE demo.db.sample PURGE;
SHOW TABLES IN demo.db;
--> db | another | false

-- [ALTER TABLE ... RENAME TO]
CREATE TABLE demo.db.old_name (
    id bigint NOT NULL, data string, measurement float, location struct<lat: double, long: double>);
ALTER TABLE demo.db.old_name RENAME TO demo.db.sample;
SHOW TABLES IN demo.db;
--> db | another | false
--> db | sample | false

-- [ALTER TABLE ... SET TBLPROPERTIES]
ALTER TABLE demo.db.sample SET TBLPROPERTIES (
    'read.split.target-size'='268435456'
);
SHOW TBLPROPERTIES demo.db.sample ('read.split.target-size');
--> read.split.target-size | 268435456
ALTER TABLE demo.db.sample SET TBLPROPERTIES (
    'comment' = 'A table comment.'
);

-- [ALTER TABLE ... UNSET TBLPROPERTIES]
ALTER TABLE demo.db.sample UNSET TBLPROPERTIES ('read.split.target-size');
SHOW TBLPROPERTIES demo.db.sample ('read.split.target-size');
--> read.split.target-size | Table demo.db.sample does not have property: read.split.target-size

-- [ALTER TABLE ... ADD COLUMN]
ALTER TABLE demo.db.sample
ADD COLUMNS (
    new_column string comment 'new_column docs'
);
ALTER TABLE demo.db.sample
ADD COLUMN point struct<x: double, y: double>;
ALTER TABLE demo.db.sample
ADD COLUMN point.z double;
ALTER TABLE demo.db.sample
ADD COLUMN points array<struct<x: double, y: double>>;
ALTER TABLE demo.db.sample
ADD COLUMN points.element.z double;
ALTER TABLE demo.db.sample
ADD COLUMN areas map<struct<x: int>, struct<a: int>>;
ALTER TABLE demo.db.sample
ADD COLUMN areas.value.b int;
ALTER TABLE demo.db.sample
ADD COLUMN other_column bigint AFTER data;
ALTER TABLE demo.db.sample
ADD COLUMN point.first_column bigint FIRST;
DESCRIBE demo.db.sample;
--> id | bigint | NULL
--> data | string | NULL
--> other_column | bigint | NULL
--> measurement | float | NULL
--> location | struct<lat:double,long:double> | NULL
--> new_column | string | new_column docs
--> point | struct<first_column:bigint,x:double,y:double,z:double> | NULL
--> points | array<struct<x:double,y:double,z:double>> | NULL
--> areas | map<struct<x:int>,struct<a:int,b:int>> | NULL

-- [ALTER TABLE ... RENAME COLUMN]
ALTER TABLE demo.db.sample RENAME COLUMN data TO payload;
ALTER TABLE demo.db.sample RENAME COLUMN location.lat TO latitude;

-- [ALTER TABLE ... ALTER COLUMN]
ALTER TABLE demo.db.sample ALTER COLUMN measurement TYPE double;
ALTER TABLE demo.db.sample ALTER COLUMN measurement COMMENT 'unit is kilobytes per second';
ALTER TABLE demo.db.sample ALTER COLUMN measurement FIRST;
ALTER TABLE demo.db.sample ALTER COLUMN point.x AFTER y;
ALTER TABLE demo.db.sample ALTER COLUMN id DROP NOT NULL;

-- [ALTER TABLE ... ALTER COLUMN ... TYPE ... COMMENT]
ALTER TABLE demo.db.sample ALTER COLUMN measurement TYPE double COMMENT 'unit is bytes per second';
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'COMMENT'
ALTER TABLE demo.db.sample ALTER COLUMN measurement TYPE double;
ALTER TABLE demo.db.sample ALTER COLUMN measurement COMMENT 'unit is bytes per second';

-- [ALTER TABLE ... DROP COLUMN]
ALTER TABLE demo.db.sample DROP COLUMN other_column;
ALTER TABLE demo.db.sample DROP COLUMN point.z;
DESCRIBE demo.db.sample;
--> measurement | double | unit is bytes per second
--> id | bigint | NULL
--> payload | string | NULL
--> location | struct<latitude:double,long:double> | NULL
--> new_column | string | new_column docs
--> point | struct<first_column:bigint,y:double,x:double> | NULL
--> points | array<struct<x:double,y:double,z:double>> | NULL
--> areas | map<struct<x:int>,struct<a:int,b:int>> | NULL
INSERT INTO demo.db.sample (id) VALUES (NULL);
DROP TABLE demo.db.sample;

-- [ALTER TABLE ... ADD PARTITION FIELD]
CREATE TABLE demo.db.sample (id bigint NOT NULL, data string NOT NULL, category string, ts timestamp);
INSERT INTO demo.db.sample VALUES (1, 'one', 'a', timestamp'2026-01-01 10:00:00');
ALTER TABLE demo.db.sample ADD PARTITION FIELD category;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.add_partition_field('db.sample', 'category');
--> category | identity
ALTER TABLE demo.db.sample ADD PARTITION FIELD bucket(16, id);
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.add_partition_field('db.sample', 'bucket(16, id)');
--> category | identity
--> id_bucket_16 | bucket[16]
ALTER TABLE demo.db.sample ADD PARTITION FIELD truncate(4, data);
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.add_partition_field('db.sample', 'truncate(4, data)');
--> category | identity
--> id_bucket_16 | bucket[16]
--> data_trunc_4 | truncate[4]
ALTER TABLE demo.db.sample ADD PARTITION FIELD year(ts);
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.add_partition_field('db.sample', 'year(ts)');
--> category | identity
--> id_bucket_16 | bucket[16]
--> data_trunc_4 | truncate[4]
--> ts_year | year
ALTER TABLE demo.db.sample ADD PARTITION FIELD bucket(8, id) AS shard;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.add_partition_field(table => 'db.sample', field => 'bucket(8, id)', name => 'shard');
--> category | identity
--> id_bucket_16 | bucket[16]
--> data_trunc_4 | truncate[4]
--> ts_year | year
--> shard | bucket[8]

-- [ALTER TABLE ... DROP PARTITION FIELD]
ALTER TABLE demo.db.sample DROP PARTITION FIELD category;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.drop_partition_field('db.sample', 'category');
--> id_bucket_16 | bucket[16]
--> data_trunc_4 | truncate[4]
--> ts_year | year
--> shard | bucket[8]
ALTER TABLE demo.db.sample DROP PARTITION FIELD bucket(16, id);
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.drop_partition_field('db.sample', 'bucket(16, id)');
--> data_trunc_4 | truncate[4]
--> ts_year | year
--> shard | bucket[8]
ALTER TABLE demo.db.sample DROP PARTITION FIELD truncate(4, data);
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.drop_partition_field('db.sample', 'truncate(4, data)');
--> ts_year | year
--> shard | bucket[8]
ALTER TABLE demo.db.sample DROP PARTITION FIELD shard;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'FIELD'
CALL demo.system.drop_partition_field('db.sample', 'shard');
--> ts_year | year

-- [ALTER TABLE ... REPLACE PARTITION FIELD]
ALTER TABLE demo.db.sample REPLACE PARTITION FIELD ts_year WITH day(ts);
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'PARTITION'
CALL demo.system.replace_partition_field('db.sample', 'ts_year', 'day(ts)');
--> ts_day | day
ALTER TABLE demo.db.sample REPLACE PARTITION FIELD ts_day WITH hour(ts) AS hour_of_ts;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'PARTITION'
CALL demo.system.replace_partition_field(
    table => 'db.sample', field => 'ts_day', with => 'hour(ts)', name => 'hour_of_ts');
--> hour_of_ts | hour
INSERT INTO demo.db.sample VALUES (2, 'two', 'b', timestamp'2026-01-01 11:00:00');
SELECT id, _partition.hour_of_ts IS NULL AS is_old FROM demo.db.sample ORDER BY id;
--> 1 | true
--> 2 | false

-- [ALTER TABLE ... WRITE ORDERED BY]
ALTER TABLE demo.db.sample WRITE ORDERED BY category, id;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'WRITE'
CALL demo.system.write_ordered_by('db.sample', array('category', 'id'));
--> 1
ALTER TABLE demo.db.sample WRITE ORDERED BY category ASC NULLS LAST, id DESC NULLS FIRST;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'WRITE'
CALL demo.system.write_ordered_by('db.sample', array('category ASC NULLS LAST', 'id DESC NULLS FIRST'));
--> 2

-- [INSERT ... ORDER BY]
INSERT INTO demo.db.sample
SELECT id, data, category, ts FROM demo.db.another
ORDER BY ts, category;
SELECT count(*) FROM demo.db.sample;
--> 4

-- [ALTER TABLE ... WRITE LOCALLY ORDERED BY]
ALTER TABLE demo.db.sample WRITE LOCALLY ORDERED BY category, id;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'WRITE'
CALL demo.system.write_ordered_by('db.sample', array('category', 'id'));
--> 1
ALTER TABLE demo.db.sample SET TBLPROPERTIES ('write.distribution-mode' = 'none');

-- [ALTER TABLE ... WRITE UNORDERED]
ALTER TABLE demo.db.sample WRITE UNORDERED;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'WRITE'
CALL demo.system.write_ordered_by('db.sample', array());
--> 0

-- [ALTER TABLE ... WRITE DISTRIBUTED BY PARTITION]
ALTER TABLE demo.db.sample WRITE DISTRIBUTED BY PARTITION;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'WRITE'
ALTER TABLE demo.db.sample SET TBLPROPERTIES ('write.distribution-mode' = 'hash');
ALTER TABLE demo.db.sample WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY category, id;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'WRITE'
CALL demo.system.write_ordered_by('db.sample', array('category', 'id'));
--> 1
INSERT INTO demo.db.sample VALUES (3, 'three', 'c', NULL), (4, 'four', 'c', NULL);
SELECT count(*) FROM demo.db.sample;
--> 6

-- [ALTER TABLE ... SET IDENTIFIER FIELDS]
ALTER TABLE demo.db.sample SET IDENTIFIER FIELDS id;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'IDENTIFIER'
CALL demo.system.set_identifier_fields('db.sample', array('id'));
--> id
ALTER TABLE demo.db.sample SET IDENTIFIER FIELDS id, data;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'IDENTIFIER'
CALL demo.system.set_identifier_fields('db.sample', array('id', 'data'));
--> id
--> data

-- [ALTER TABLE ... DROP IDENTIFIER FIELDS]
ALTER TABLE demo.db.sample DROP IDENTIFIER FIELDS data;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'IDENTIFIER'
CALL demo.system.set_identifier_fields('db.sample', array('id'));
--> id
ALTER TABLE demo.db.sample DROP IDENTIFIER FIELDS id;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'IDENTIFIER'
CALL demo.system.set_identifier_fields('db.sample', array());

-- [ALTER TABLE ... CREATE BRANCH]
DECLARE OR REPLACE VARIABLE first_snapshot BIGINT;
DECLARE OR REPLACE VARIABLE current_snapshot BIGINT;
SET VAR first_snapshot = (SELECT snapshot_id FROM demo.db.sample.snapshots WHERE parent_id IS NULL);
SET VAR current_snapshot = (SELECT snapshot_id FROM demo.db.sample.refs WHERE name = 'main');
ALTER TABLE demo.db.sample CREATE BRANCH `audit-branch`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch('db.sample', 'audit-branch');
--> audit-branch | *
ALTER TABLE demo.db.sample CREATE BRANCH IF NOT EXISTS `audit-branch`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch('db.sample', 'audit-branch');
--! AnalysisException: branch 'audit-branch' already exists; choose another name
CALL demo.system.create_branch(table => 'db.sample', branch => 'audit-branch', if_not_exists => true);
--> audit-branch | *
ALTER TABLE demo.db.sample CREATE OR REPLACE BRANCH `audit-branch`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch(table => 'db.sample', branch => 'audit-branch', or_replace => true);
--> audit-branch | *
ALTER TABLE demo.db.sample CREATE BRANCH `audit-2`
AS OF VERSION 1234;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch('db.sample', 'audit-2', first_snapshot);
--> audit-2 | *
ALTER TABLE demo.db.sample CREATE BRANCH `audit-3`
AS OF VERSION 1234 RETAIN 30 DAYS
WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch(table => 'db.sample', branch => 'audit-3', snapshot_id => first_snapshot,
    retain => '30 days', min_snapshots_to_keep => 3, max_snapshot_age => '2 days');
--> audit-3 | *
SELECT name, snapshot_id = current_snapshot, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms
FROM demo.db.sample.refs WHERE type = 'BRANCH' ORDER BY name;
--> audit-2 | false | NULL | NULL | NULL
--> audit-3 | false | 2592000000 | 3 | 172800000
--> audit-branch | true | NULL | NULL | NULL
--> main | true | NULL | NULL | NULL

-- [ALTER TABLE ... CREATE TAG]
ALTER TABLE demo.db.sample CREATE TAG `historical-tag`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag('db.sample', 'historical-tag');
--> historical-tag | *
ALTER TABLE demo.db.sample CREATE TAG IF NOT EXISTS `historical-tag`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag(table => 'db.sample', tag => 'historical-tag', if_not_exists => true);
--> historical-tag | *
ALTER TABLE demo.db.sample CREATE OR REPLACE TAG `historical-tag`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag(table => 'db.sample', tag => 'historical-tag', or_replace => true);
--> historical-tag | *
ALTER TABLE demo.db.sample CREATE TAG `tag-2` AS OF VERSION 1234;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag('db.sample', 'tag-2', first_snapshot);
--> tag-2 | *
ALTER TABLE demo.db.sample CREATE TAG `tag-3`
AS OF VERSION 1234 RETAIN 365 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag(table => 'db.sample', tag => 'tag-3', snapshot_id => first_snapshot,
    retain => '365 days');
--> tag-3 | *

-- [ALTER TABLE ... REPLACE BRANCH]
ALTER TABLE demo.db.sample REPLACE BRANCH `audit-branch`
AS OF VERSION 4567 RETAIN 60 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'BRANCH'
CALL demo.system.create_branch(table => 'db.sample', branch => 'audit-branch', snapshot_id => first_snapshot,
    retain => '60 days', or_replace => true);
--> audit-branch | *

-- [ALTER TABLE ... REPLACE TAG]
ALTER TABLE demo.db.sample REPLACE TAG `historical-tag`
AS OF VERSION 4567 RETAIN 60 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'TAG'
CALL demo.system.create_tag(table => 'db.sample', tag => 'historical-tag', snapshot_id => first_snapshot,
    retain => '60 days', or_replace => true);
--> historical-tag | *
SELECT name, snapshot_id = first_snapshot, max_reference_age_in_ms
FROM demo.db.sample.refs WHERE name <> 'main' ORDER BY name;
--> audit-2 | true | NULL
--> audit-3 | true | 2592000000
--> audit-branch | true | 5184000000
--> historical-tag | true | 5184000000
--> tag-2 | true | NULL
--> tag-3 | true | 31536000000

-- [ALTER TABLE ... DROP BRANCH]
ALTER TABLE demo.db.sample DROP BRANCH `audit-branch`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'BRANCH'
CALL demo.system.drop_branch('db.sample', 'audit-branch');
--> audit-branch | *

-- [ALTER TABLE ... DROP TAG]
ALTER TABLE demo.db.sample DROP TAG `historical-tag`;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'TAG'
CALL demo.system.drop_tag('db.sample', 'historical-tag');
--> historical-tag | *
SELECT name FROM demo.db.sample.refs ORDER BY name;
--> audit-2
--> audit-3
--> main
--> tag-2
--> tag-3

-- [CREATE VIEW]
CREATE VIEW demo.db.view AS SELECT * FROM demo.db.another;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]
CREATE VIEW IF NOT EXISTS demo.db.view AS SELECT * FROM demo.db.another;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]
CREATE VIEW demo.db.view (ID COMMENT 'Unique ID', ZIP COMMENT 'Zipcode')
    COMMENT 'View Comment'
    TBLPROPERTIES ('key1' = 'val1', 'key2' = 'val2')
    AS SELECT id, data FROM demo.db.another;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]
CREATE OR REPLACE VIEW demo.db.view (updated_id COMMENT 'updated ID')
    TBLPROPERTIES ('key1' = 'new_val1')
    AS SELECT id FROM demo.db.another;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]

-- [DROP VIEW]
DROP VIEW demo.db.view;
--! AnalysisException: [UNSUPPORTED_FEATURE.CATALOG_OPERATION]
DROP VIEW IF EXISTS demo.db.view;
--! AnalysisException: [UNSUPPORTED_FEATURE.CATALOG_OPERATION]

-- [ALTER VIEW ... SET TBLPROPERTIES]
ALTER VIEW demo.db.view SET TBLPROPERTIES ('key1' = 'val1', 'key2' = 'val2');
--! AnalysisException: [UNSUPPORTED_FEATURE.CATALOG_OPERATION]

-- [ALTER VIEW ... UNSET TBLPROPERTIES]
ALTER VIEW demo.db.view UNSET TBLPROPERTIES ('key1', 'key2');
--! AnalysisException: [UNSUPPORTED_FEATURE.CATALOG_OPERATION]

-- [SHOW TBLPROPERTIES of a view]
SHOW TBLPROPERTIES demo.db.view;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]

-- [SHOW VIEWS]
SHOW VIEWS IN demo;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]
SHOW VIEWS IN demo.db;
--! AnalysisException: [MISSING_CATALOG_ABILITY.VIEWS]

-- [SHOW CREATE TABLE of a view]
SHOW CREATE TABLE demo.db.view;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]

-- [DESCRIBE of a view]
DESCRIBE EXTENDED demo.db.view;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
