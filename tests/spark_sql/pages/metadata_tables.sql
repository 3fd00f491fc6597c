-- Metadata tables: the history, the snapshots and the branches and tags of a table.

CREATE TABLE demo.db.t (id bigint);
SELECT * FROM demo.db.t.snapshots;
SELECT * FROM demo.db.t.refs;
INSERT INTO demo.db.t VALUES (1);
DESCRIBE demo.db.t.snapshots;
--> committed_at | timestamp | NULL
--> snapshot_id | bigint | NULL
--> parent_id | bigint | NULL
--> operation | string | NULL
--> manifest_list | string | NULL
--> summary | map<string,string> | NULL
DESCRIBE demo.db.t.history;
--> made_current_at | timestamp | NULL
--> snapshot_id | bigint | NULL
--> parent_id | bigint | NULL
--> is_current_ancestor | boolean | NULL
DESCRIBE demo.db.t.refs;
--> name | string | NULL
--> type | string | NULL
--> snapshot_id | bigint | NULL
--> max_reference_age_in_ms | bigint | NULL
--> min_snapshots_to_keep | int | NULL
--> max_snapshot_age_in_ms | bigint | NULL
SELECT operation, summary['added-records'], summary['total-data-files'] FROM demo.db.t.snapshots;
--> append | 1 | 1
SELECT is_current_ancestor, parent_id FROM demo.db.t.history;
--> true | NULL
SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM demo.db.t.refs;
--> main | BRANCH | NULL | NULL | NULL
INSERT INTO demo.db.t VALUES (2);
DELETE FROM demo.db.t WHERE id = 2;
INSERT OVERWRITE demo.db.t VALUES (3), (4);
TRUNCATE TABLE demo.db.t;
SELECT operation, summary['total-records'] FROM demo.db.t.snapshots ORDER BY committed_at;
--> append | 1
--> append | 2
--> delete | 1
--> overwrite | 2
--> delete | 0
INSERT OVERWRITE demo.db.t VALUES (3);
SELECT max_by(operation, committed_at) FROM demo.db.t.snapshots;
--> append
--iceberg [overwrite-of-nothing]: the operation is that of the statement
--iceberg> overwrite
SELECT h.is_current_ancestor, s.operation FROM demo.db.t.history h JOIN demo.db.t.snapshots s USING (snapshot_id)
ORDER BY h.made_current_at LIMIT 2;
--> true | append
--> true | append
INSERT INTO demo.db.t.snapshots SELECT * FROM demo.db.t.snapshots;
--! AnalysisException: [UNSUPPORTED_FEATURE.TABLE_OPERATION]
--iceberg [write-errors]: the error is its own
--iceberg! Cannot append to a metadata table

-- Those of files are not implemented.
SELECT count(*) FROM demo.db.t.files;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
--iceberg [metadata-tables]: there are also files, manifests, partitions, entries and others
--iceberg> 1
