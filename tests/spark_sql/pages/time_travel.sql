-- Time travel: by snapshot, branch, tag and time; branches and tags as names.

CREATE TABLE demo.db.t (id bigint);
INSERT INTO demo.db.t VALUES (1);
DECLARE OR REPLACE VARIABLE first bigint;
SET VAR first = (SELECT snapshot_id FROM demo.db.t.snapshots);
CALL demo.system.create_tag('db.t', 'v1');
--> v1 | *
--iceberg [own-grammar]: tags are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.t CREATE TAG v1
CALL demo.system.create_branch('db.t', 'audit');
--> audit | *
--iceberg [own-grammar]: branches are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.t CREATE BRANCH audit
ALTER TABLE demo.db.t ADD COLUMN note string;
INSERT INTO demo.db.t VALUES (2, 'b');

-- A number is a snapshot; a text is a branch or a tag. A state of the past has its own columns; a branch has the current ones.
EXECUTE IMMEDIATE 'SELECT * FROM demo.db.t VERSION AS OF ' || first;
--> 1
SELECT * FROM demo.db.t VERSION AS OF 'v1';
--> 1
SELECT * FROM demo.db.t VERSION AS OF 'audit';
--> 1 | NULL
SELECT * FROM demo.db.t VERSION AS OF 'main' ORDER BY id;
--> 1 | NULL
--> 2 | b
SELECT * FROM demo.db.t FOR SYSTEM_VERSION AS OF 'v1';
--> 1
SELECT * FROM demo.db.t TIMESTAMP AS OF '2100-01-01' ORDER BY id;
--> 1 | NULL
--> 2 | b
SELECT * FROM demo.db.t TIMESTAMP AS OF '2000-01-01';
--! AnalysisException: no snapshot at or before
SELECT * FROM demo.db.t VERSION AS OF 5;
--! AnalysisException: 5
SELECT * FROM demo.db.t VERSION AS OF 'absent';
--! AnalysisException: absent

-- The same as names.
SELECT * FROM demo.db.t.tag_v1;
--> 1
SELECT id FROM demo.db.t.branch_audit;
--> 1
EXECUTE IMMEDIATE 'SELECT * FROM demo.db.t.snapshot_id_' || first;
--> 1
SELECT * FROM demo.db.t.at_timestamp_4102444800000 ORDER BY id;
--> 1 | NULL
--> 2 | b
SELECT * FROM demo.db.t.absent;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]

-- Two states in one query.
SELECT n.id FROM demo.db.t n LEFT ANTI JOIN demo.db.t VERSION AS OF 'v1' AS o ON n.id = o.id;
--> 2

-- A branch is written by its name. A state of the past cannot be written.
INSERT INTO demo.db.t.branch_audit VALUES (3, 'c');
SELECT * FROM demo.db.t.branch_audit ORDER BY id;
--> 1 | NULL
--> 3 | c
INSERT INTO demo.db.t.tag_v1 VALUES (4);
--! AnalysisException: [UNSUPPORTED_FEATURE.TABLE_OPERATION]
--iceberg [write-errors]: the error is its own
--iceberg! Cannot write to table with time travel
