-- Writes to branches: by name, and by the setting spark.wap.branch if the table allows it.

CREATE TABLE demo.db.t (id bigint, city string);
INSERT INTO demo.db.t VALUES (1, 'Oslo');
CALL demo.system.create_branch('db.t', 'audit');
--> audit | *
--iceberg [own-grammar]: branches are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.t CREATE BRANCH audit
INSERT INTO demo.db.t.branch_audit VALUES (2, 'Rome'), (3, 'Bern');
UPDATE demo.db.t.branch_audit SET city = upper(city) WHERE id = 2;
DELETE FROM demo.db.t.branch_audit WHERE id = 3;
MERGE INTO demo.db.t.branch_audit AS b USING (SELECT 4L AS id, 'Lima' AS city) AS s ON b.id = s.id
WHEN NOT MATCHED THEN INSERT *;
SELECT * FROM demo.db.t VERSION AS OF 'audit' ORDER BY id;
--> 1 | Oslo
--> 2 | ROME
--> 4 | Lima
SELECT * FROM demo.db.t;
--> 1 | Oslo
INSERT OVERWRITE demo.db.t.branch_audit VALUES (5, 'Nara');
SELECT * FROM demo.db.t.branch_audit;
--> 5 | Nara
INSERT INTO demo.db.t.branch_absent VALUES (2, 'Rome');
--! AnalysisException: absent

-- In a table with write.wap.enabled, the setting selects the branch of reads and writes. The first write makes it.
ALTER TABLE demo.db.t SET TBLPROPERTIES ('write.wap.enabled' = 'true');
SET spark.wap.branch = staging;
--> spark.wap.branch | staging
INSERT INTO demo.db.t VALUES (6, 'Rome');
SELECT * FROM demo.db.t ORDER BY id;
--> 1 | Oslo
--> 6 | Rome
RESET spark.wap.branch;
SELECT * FROM demo.db.t;
--> 1 | Oslo

-- fast_forward publishes the branch.
CALL demo.system.fast_forward('db.t', 'main', 'staging');
--> main | * | *
SELECT * FROM demo.db.t ORDER BY id;
--> 1 | Oslo
--> 6 | Rome
SELECT name, type FROM demo.db.t.refs ORDER BY name;
--> audit | BRANCH
--> main | BRANCH
--> staging | BRANCH
CALL demo.system.drop_branch('db.t', 'staging');
--> staging | *
--iceberg [own-grammar]: branches are dropped by a grammar of its own
--iceberg; ALTER TABLE demo.db.t DROP BRANCH staging
SELECT name FROM demo.db.t.refs ORDER BY name;
--> audit
--> main

-- A branch of a table without snapshots starts with an empty one; main still has none. A tag needs a snapshot.
CREATE TABLE demo.db.first (id bigint, city string);
CALL demo.system.create_branch('db.first', 'audit');
--> audit | *
--iceberg [own-grammar]: branches are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.first CREATE BRANCH audit
SELECT name, type FROM demo.db.first.refs;
--> audit | BRANCH
SELECT operation, parent_id FROM demo.db.first.snapshots;
--> append | NULL
CALL demo.system.create_tag('db.first', 'v1');
--! AnalysisException: the table has no current snapshot
INSERT INTO demo.db.first.branch_audit VALUES (1, 'Oslo');
SELECT * FROM demo.db.first;
CALL demo.system.fast_forward('db.first', 'main', 'audit');
--> main | NULL | *
SELECT * FROM demo.db.first;
--> 1 | Oslo
