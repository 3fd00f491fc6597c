-- The statements of Apache Iceberg's page "Spark Queries", in its order.

CREATE TABLE demo.db.table (id bigint, data string);
INSERT INTO demo.db.table VALUES (1, 'a');
DECLARE OR REPLACE VARIABLE first_snapshot BIGINT;
DECLARE OR REPLACE VARIABLE first_seconds BIGINT;
DECLARE OR REPLACE VARIABLE query STRING;
SET VAR first_snapshot = (SELECT snapshot_id FROM demo.db.table.snapshots);
CALL demo.system.create_branch('db.table', 'audit-branch');
--> audit-branch | *
CALL demo.system.create_tag('db.table', 'historical-snapshot');
--> historical-snapshot | *
-- A time in whole seconds after the first snapshot and before the second one.
SELECT java_method('java.lang.Thread', 'sleep', 2000L) IS NULL;
--> false
SET VAR first_seconds = (SELECT unix_seconds(made_current_at) + 1 FROM demo.db.table.history);
ALTER TABLE demo.db.table ADD COLUMN more int;
INSERT INTO demo.db.table VALUES (2, 'b', 20);

-- [SELECT]
SELECT * FROM demo.db.table ORDER BY id;
--> 1 | a | NULL
--> 2 | b | 20

-- [SELECT ... FROM table.files]
SELECT content, file_format, spec_id, record_count, readable_metrics.id.lower_bound, readable_metrics.data.upper_bound
FROM demo.db.table.files ORDER BY file_path IS NULL, readable_metrics.id.lower_bound;
--> 0 | PARQUET | 0 | 1 | 1 | a
--> 0 | PARQUET | 0 | 1 | 2 | b

-- [SELECT demo.system.bucket(...)]
SELECT demo.system.iceberg_version();
--! AnalysisException: [MISSING_CATALOG_ABILITY.FUNCTIONS]
SELECT demo.system.bucket(16, id) FROM demo.db.table;
--! AnalysisException: [MISSING_CATALOG_ABILITY.FUNCTIONS]
SELECT demo.system.years(current_timestamp());
--! AnalysisException: [MISSING_CATALOG_ABILITY.FUNCTIONS]
SELECT demo.system.truncate(1, data) FROM demo.db.table;
--! AnalysisException: [MISSING_CATALOG_ABILITY.FUNCTIONS]

-- [TIMESTAMP AS OF]
SET VAR query = 'SELECT * FROM demo.db.table TIMESTAMP AS OF ''' || timestamp_seconds(first_seconds) || '''';
EXECUTE IMMEDIATE query;
--> 1 | a
-- Seconds since 1970.
SET VAR query = 'SELECT * FROM demo.db.table TIMESTAMP AS OF ' || first_seconds;
EXECUTE IMMEDIATE query;
--> 1 | a

-- [VERSION AS OF]
SET VAR query = 'SELECT * FROM demo.db.table VERSION AS OF ' || first_snapshot;
EXECUTE IMMEDIATE query;
--> 1 | a
-- A branch has the columns of the table, a tag those of its snapshot.
SELECT * FROM demo.db.table VERSION AS OF 'audit-branch';
--> 1 | a | NULL
SELECT * FROM demo.db.table VERSION AS OF 'historical-snapshot';
--> 1 | a

-- [FOR SYSTEM_TIME AS OF]
SET VAR query = 'SELECT * FROM demo.db.table FOR SYSTEM_TIME AS OF ''' || timestamp_seconds(first_seconds) || '''';
EXECUTE IMMEDIATE query;
--> 1 | a
SET VAR query = 'SELECT * FROM demo.db.table FOR SYSTEM_TIME AS OF ' || first_seconds;
EXECUTE IMMEDIATE query;
--> 1 | a

-- [FOR SYSTEM_VERSION AS OF]
SET VAR query = 'SELECT * FROM demo.db.table FOR SYSTEM_VERSION AS OF ' || first_snapshot;
EXECUTE IMMEDIATE query;
--> 1 | a
SELECT * FROM demo.db.table FOR SYSTEM_VERSION AS OF 'audit-branch';
--> 1 | a | NULL
SELECT * FROM demo.db.table FOR SYSTEM_VERSION AS OF 'historical-snapshot';
--> 1 | a

-- [SELECT ... FROM table.branch_name]
SELECT * FROM demo.db.table.`branch_audit-branch`;
--> 1 | a | NULL

-- [SELECT ... FROM table.tag_name]
SELECT * FROM demo.db.table.`tag_historical-snapshot`;
--> 1 | a

-- [SELECT ... FROM table.history]
SELECT parent_id IS NULL, is_current_ancestor FROM demo.db.table.history ORDER BY made_current_at;
--> true | true
--> false | true

-- [SELECT ... FROM table.metadata_log_entries]
SELECT latest_schema_id, latest_sequence_number FROM demo.db.table.metadata_log_entries ORDER BY timestamp DESC LIMIT 1;
--> 1 | 2

-- [SELECT ... FROM table.snapshots]
SELECT operation, summary['added-records'] FROM demo.db.table.snapshots ORDER BY committed_at;
--> append | 1
--> append | 1
SELECT
    s.operation,
    h.is_current_ancestor,
    s.summary['spark.app.id'] IS NOT NULL
FROM demo.db.table.history h
JOIN demo.db.table.snapshots s
  ON h.snapshot_id = s.snapshot_id
ORDER BY made_current_at;
--> append | true | true
--> append | true | true

-- [SELECT ... FROM table.entries]
SELECT status, sequence_number, file_sequence_number, data_file.record_count
FROM demo.db.table.entries ORDER BY sequence_number;
--> 1 | 1 | 1 | 1
--> 1 | 2 | 2 | 1

-- [SELECT ... FROM table.data_files]
SELECT content, record_count FROM demo.db.table.data_files;
--> 0 | 1
--> 0 | 1

-- [SELECT ... FROM table.delete_files]
SELECT * FROM demo.db.table.delete_files;

-- [SELECT ... FROM table.manifests]
SELECT content, added_data_files_count, partition_summaries FROM demo.db.table.manifests;
--> 0 | 1 | []
--> 0 | 1 | []

-- [SELECT ... FROM table.partitions]
SELECT record_count, file_count, position_delete_file_count, last_updated_snapshot_id > 0 FROM demo.db.table.partitions;
--> 2 | 2 | 0 | true

-- [SELECT ... FROM table.position_deletes]
SELECT * FROM demo.db.table.position_deletes;

-- [SELECT ... FROM table.all_files]
SELECT content, record_count FROM demo.db.table.all_files;
--> 0 | 1
--> 0 | 1

-- [SELECT ... FROM table.all_data_files]
SELECT content, record_count FROM demo.db.table.all_data_files;
--> 0 | 1
--> 0 | 1

-- [SELECT ... FROM table.all_delete_files]
SELECT * FROM demo.db.table.all_delete_files;

-- [SELECT ... FROM table.all_entries]
SELECT status, data_file.record_count FROM demo.db.table.all_entries;
--> 1 | 1
--> 1 | 1

-- [SELECT ... FROM table.all_manifests]
SELECT count(*), count(DISTINCT path), count(DISTINCT reference_snapshot_id) FROM demo.db.table.all_manifests;
--> 3 | 2 | 2

-- [SELECT ... FROM table.refs]
SELECT name, type, snapshot_id = first_snapshot, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms
FROM demo.db.table.refs ORDER BY name;
--> audit-branch | BRANCH | true | NULL | NULL | NULL
--> historical-snapshot | TAG | true | NULL | NULL | NULL
--> main | BRANCH | false | NULL | NULL | NULL

-- [SELECT ... FROM table.manifests TIMESTAMP AS OF]
SET VAR query = 'SELECT count(*) FROM demo.db.table.manifests TIMESTAMP AS OF ' || first_seconds;
EXECUTE IMMEDIATE query;
--> 1

-- [SELECT ... FROM table.partitions VERSION AS OF]
SET VAR query = 'SELECT record_count FROM demo.db.table.partitions VERSION AS OF ' || first_snapshot;
EXECUTE IMMEDIATE query;
--> 1
