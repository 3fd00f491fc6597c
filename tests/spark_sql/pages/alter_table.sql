-- ALTER TABLE: columns, also inside structs, lists and maps; properties.

CREATE TABLE demo.db.t (id int, name string, who struct<city: string>, list array<struct<x: int>>)
TBLPROPERTIES ('format-version' = '3');
INSERT INTO demo.db.t VALUES (1, 'a', named_struct('city', 'Oslo'), array(named_struct('x', 1)));
ALTER TABLE demo.db.t ADD COLUMNS (price decimal(10, 2) COMMENT 'in euro' AFTER id, first string FIRST);
ALTER TABLE demo.db.t ADD COLUMNS (who.age int FIRST, list.element.y int);
ALTER TABLE demo.db.t ADD COLUMN rank int DEFAULT 7;
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
--> rank | int | NULL
SELECT * FROM demo.db.t;
--> NULL | a | 1 | NULL | {NULL, Oslo} | [{1, NULL}] | 7
ALTER TABLE demo.db.t ALTER COLUMN rank SET DEFAULT 8;
INSERT INTO demo.db.t (id) VALUES (2);
SELECT id, rank FROM demo.db.t ORDER BY id;
--> 1 | 7
--> 2 | 8
ALTER TABLE demo.db.t DROP COLUMNS (first, who.age, price, rank);
SELECT * FROM demo.db.t WHERE id = 1;
--> a | 1 | {Oslo} | [{1, NULL}]
ALTER TABLE demo.db.t ALTER COLUMN id SET NOT NULL;
--! AnalysisException: Cannot change nullable column to non-nullable
ALTER TABLE demo.db.t ALTER COLUMN id TYPE int;
--! AnalysisException: [NOT_SUPPORTED_CHANGE_COLUMN]
ALTER TABLE demo.db.t SET TBLPROPERTIES ('team' = 'sales', 'commit.retry.num-retries' = '9');
ALTER TABLE demo.db.t UNSET TBLPROPERTIES ('commit.retry.num-retries');
SHOW TBLPROPERTIES demo.db.t ('team');
--> team | sales
ALTER TABLE demo.db.t SET LOCATION 'file:///elsewhere';
--! AnalysisException: SET LOCATION is not supported
COMMENT ON TABLE demo.db.t IS 'all of it';
SHOW TBLPROPERTIES demo.db.t ('comment');
