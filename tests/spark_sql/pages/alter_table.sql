-- ALTER TABLE: columns, also inside structs, lists and maps; properties.

CREATE TABLE demo.db.t (id int, name string, who struct<city: string>, list array<struct<x: int>>)
TBLPROPERTIES ('format-version' = '3');
INSERT INTO demo.db.t VALUES (1, 'a', named_struct('city', 'Oslo'), array(named_struct('x', 1)));
ALTER TABLE demo.db.t ADD COLUMNS (price decimal(10, 2) COMMENT 'in euro' AFTER id, first string FIRST);
ALTER TABLE demo.db.t ADD COLUMNS (who.age int FIRST, list.element.y int);
ALTER TABLE demo.db.t RENAME COLUMN name TO label;
ALTER TABLE demo.db.t ALTER COLUMN id TYPE bigint;
ALTER TABLE demo.db.t ALTER COLUMN label COMMENT 'the label';
ALTER TABLE demo.db.t ALTER COLUMN label AFTER first;
DESCRIBE demo.db.t;
--> first | string | NULL
--> label | string | the label
--> id | bigint | NULL
--> price | decimal(10,2) | in euro
--> who | struct<age:int,city:string> | NULL
--> list | array<struct<x:int,y:int>> | NULL
SELECT * FROM demo.db.t;
--> NULL | a | 1 | NULL | {NULL, Oslo} | [{1, NULL}]
ALTER TABLE demo.db.t DROP COLUMNS (first, who.age, price);
SELECT * FROM demo.db.t WHERE id = 1;
--> a | 1 | {Oslo} | [{1, NULL}]
ALTER TABLE demo.db.t ALTER COLUMN id SET NOT NULL;
--! AnalysisException: Cannot change nullable column to non-nullable
ALTER TABLE demo.db.t ALTER COLUMN id TYPE int;
--! AnalysisException: [NOT_SUPPORTED_CHANGE_COLUMN]
ALTER TABLE demo.db.t ADD COLUMN label int;
--! AnalysisException: [FIELD_ALREADY_EXISTS]
ALTER TABLE demo.db.t DROP COLUMN IF EXISTS absent;
ALTER TABLE demo.db.t RENAME COLUMN absent TO present;
--! AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION]

-- DROP NOT NULL makes a column optional. A field of a struct is named by its path.
CREATE TABLE demo.db.strict (id bigint NOT NULL, at struct<x: int NOT NULL, y: float>);
ALTER TABLE demo.db.strict ALTER COLUMN id DROP NOT NULL;
ALTER TABLE demo.db.strict ALTER COLUMN at.x DROP NOT NULL;
ALTER TABLE demo.db.strict ALTER COLUMN at.y TYPE double;
ALTER TABLE demo.db.strict RENAME COLUMN at.y TO z;
ALTER TABLE demo.db.strict ALTER COLUMN at.z FIRST;
INSERT INTO demo.db.strict VALUES (NULL, named_struct('z', 1.5D, 'x', NULL));
SELECT * FROM demo.db.strict;
--> NULL | {1.5, NULL}
ALTER TABLE demo.db.strict REPLACE COLUMNS (id bigint, note string);
SELECT * FROM demo.db.strict;
--> NULL | NULL

-- A column with a default: rows that were there have it too. A later default is for new rows.
CREATE TABLE demo.db.ranked (id int) TBLPROPERTIES ('format-version' = '3');
INSERT INTO demo.db.ranked VALUES (1);
ALTER TABLE demo.db.ranked ADD COLUMN rank int DEFAULT 7;
--iceberg [column-defaults]: not implemented
--iceberg! setting default values in Spark is currently unsupported
--iceberg; ALTER TABLE demo.db.ranked ADD COLUMN rank int
ALTER TABLE demo.db.ranked ALTER COLUMN rank SET DEFAULT 8;
--iceberg [column-defaults]: not implemented
--iceberg! Cannot apply unknown table change
INSERT INTO demo.db.ranked (id) VALUES (2);
SELECT * FROM demo.db.ranked ORDER BY id;
--> 1 | 7
--> 2 | 8
--iceberg [column-defaults]: the column has no default
--iceberg> 1 | NULL
--iceberg> 2 | NULL

-- Properties.
ALTER TABLE demo.db.t SET TBLPROPERTIES ('team' = 'sales', 'commit.retry.num-retries' = '9');
ALTER TABLE demo.db.t UNSET TBLPROPERTIES ('commit.retry.num-retries');
SHOW TBLPROPERTIES demo.db.t ('team');
--> team | sales
SHOW TBLPROPERTIES demo.db.t ('commit.retry.num-retries');
--> commit.retry.num-retries | Table demo.db.t does not have property: commit.retry.num-retries
ALTER TABLE demo.db.t SET TBLPROPERTIES ('format-version' = '2');
--! AnalysisException: format
COMMENT ON TABLE demo.db.t IS 'all of it';
SELECT * FROM demo.db.absent;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
ALTER TABLE demo.db.absent ADD COLUMN a int;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]

-- The location of a table cannot be changed.
DECLARE OR REPLACE VARIABLE move string;
SET VAR move = (
  SELECT concat('ALTER TABLE demo.db.t SET LOCATION "', regexp_replace(max(manifest_list), '/metadata/.*', '-moved'), '"')
  FROM demo.db.t.snapshots);
EXECUTE IMMEDIATE move;
--! AnalysisException: SET LOCATION is not supported
--iceberg [set-location]: new files are written to the new location

-- A partition field that is added has the number of its transform in its name. A column that is NOT NULL may be set so.
CREATE TABLE demo.db.parts (id bigint NOT NULL, city string) PARTITIONED BY (city);
INSERT INTO demo.db.parts VALUES (1, 'Oslo');
ALTER TABLE demo.db.parts ALTER COLUMN id SET NOT NULL;
CALL demo.system.add_partition_field('db.parts', 'bucket(16, id)');
--> city | identity
--> id_bucket_16 | bucket[16]
--iceberg [own-grammar]: partition fields are added by a grammar of its own
--iceberg; ALTER TABLE demo.db.parts ADD PARTITION FIELD bucket(16, id)
INSERT INTO demo.db.parts VALUES (2, 'Rome');
SELECT partition.id_bucket_16 IS NULL FROM demo.db.parts.files ORDER BY 1;
--> false
--> true

-- A partition column that was dropped is added again, as another column.
CALL demo.system.drop_partition_field('db.parts', 'city');
--> id_bucket_16 | bucket[16]
--iceberg [own-grammar]: partition fields are dropped by a grammar of its own
--iceberg; ALTER TABLE demo.db.parts DROP PARTITION FIELD city
ALTER TABLE demo.db.parts DROP COLUMN city;
ALTER TABLE demo.db.parts ADD COLUMN city string;
INSERT INTO demo.db.parts VALUES (3, 'Bern');
SELECT * FROM demo.db.parts ORDER BY id;
--> 1 | NULL
--> 2 | NULL
--> 3 | Bern
