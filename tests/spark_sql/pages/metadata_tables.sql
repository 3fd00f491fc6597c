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

-- The files of a table, their partitions and their statistics.
CREATE TABLE demo.db.p (id bigint, city string, x double) PARTITIONED BY (city)
TBLPROPERTIES ('write.delete.mode' = 'merge-on-read');
SELECT * FROM demo.db.p.files;
SELECT * FROM demo.db.p.partitions;
INSERT INTO demo.db.p VALUES (1, 'Oslo', 0.5), (2, 'Oslo', NULL), (3, 'Rome', 1.5);
DELETE FROM demo.db.p WHERE id = 2;
SELECT content, file_format, spec_id, partition.city, record_count, readable_metrics.id.lower_bound,
    readable_metrics.x.null_value_count FROM demo.db.p.data_files ORDER BY partition.city;
--> 0 | PARQUET | 0 | Oslo | 2 | 1 | 1
--> 0 | PARQUET | 0 | Rome | 1 | 3 | 0
SELECT content, partition.city, record_count FROM demo.db.p.delete_files;
--> 1 | Oslo | 1
SELECT content, count(*) FROM demo.db.p.files GROUP BY content ORDER BY content;
--> 0 | 2
--> 1 | 1
SELECT status, data_file.content, count(*) FROM demo.db.p.entries GROUP BY ALL ORDER BY ALL;
--> 1 | 0 | 2
--> 1 | 1 | 1
SELECT partition.city, spec_id, record_count, file_count, position_delete_record_count, position_delete_file_count,
    equality_delete_record_count, equality_delete_file_count FROM demo.db.p.partitions ORDER BY ALL;
--> Oslo | 0 | 2 | 1 | 1 | 1 | 0 | 0
--> Rome | 0 | 1 | 1 | 0 | 0 | 0 | 0
SELECT content, added_data_files_count, added_delete_files_count, partition_summaries FROM demo.db.p.manifests
ORDER BY content;
--> 0 | 2 | 0 | [{false, false, Oslo, Rome}]
--> 1 | 0 | 1 | [{false, false, Oslo, Oslo}]
SELECT p.pos, p.row, p.partition.city, p.spec_id, p.file_path = f.file_path FROM demo.db.p.position_deletes p
JOIN demo.db.p.data_files f ON p.partition = f.partition;
--> 1 | NULL | Oslo | 0 | true
SELECT latest_snapshot_id IS NULL, latest_schema_id, latest_sequence_number FROM demo.db.p.metadata_log_entries
ORDER BY timestamp;
--> true | NULL | NULL
--> false | 0 | 1
--> false | 0 | 2

-- Those of all snapshots.
INSERT OVERWRITE demo.db.p VALUES (9, 'Bern', 0.0);
SELECT (SELECT count(*) FROM demo.db.p.data_files), (SELECT count(*) FROM demo.db.p.all_files),
    (SELECT count(*) FROM demo.db.p.all_data_files), (SELECT count(*) FROM demo.db.p.all_delete_files);
--> 1 | 4 | 3 | 1
SELECT count(DISTINCT reference_snapshot_id) FROM demo.db.p.all_manifests;
--> 3
SELECT count(DISTINCT data_file.file_path) FROM demo.db.p.all_entries;
--> 4

-- Earlier states.
DECLARE OR REPLACE VARIABLE query STRING;
SET VAR query = 'SELECT partition.city, record_count FROM demo.db.p.partitions VERSION AS OF '
    || (SELECT min_by(snapshot_id, committed_at) FROM demo.db.p.snapshots) || ' ORDER BY ALL';
EXECUTE IMMEDIATE query;
--> Oslo | 2
--> Rome | 1
CALL demo.system.create_tag('db.p', 'now');
--> now | *
--iceberg [own-grammar]: tags are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.p CREATE TAG now
INSERT INTO demo.db.p VALUES (10, 'Bern', 1.0);
SELECT count(*) FROM demo.db.p.data_files VERSION AS OF 'now';
--> 1
SELECT count(*) FROM demo.db.p.data_files.tag_now;
--> 1
SELECT count(*) FROM demo.db.p.data_files;
--> 2
-- The history is the same at each of them.
SELECT count(*) FROM demo.db.p.snapshots VERSION AS OF 'now';
--> 4
SELECT count(*) FROM demo.db.p.all_files VERSION AS OF 'now';
--! AnalysisException: leave out the version
spark.read.option("start-snapshot-id", "1").table("demo.db.p.files").count();
--! AnalysisException: option 'start-snapshot-id' is not known for a read of the metadata table files
