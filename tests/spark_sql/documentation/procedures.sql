-- The calls of Apache Iceberg's page "Spark Procedures", in its order.

CREATE TABLE demo.db.sample (id bigint, data string) TBLPROPERTIES ('write.wap.enabled' = 'true');
INSERT INTO demo.db.sample VALUES (1, 'a');
DECLARE OR REPLACE VARIABLE first_snapshot BIGINT;
DECLARE OR REPLACE VARIABLE second_snapshot BIGINT;
DECLARE OR REPLACE VARIABLE first_time TIMESTAMP;
SET VAR (first_snapshot, first_time) = (SELECT snapshot_id, made_current_at FROM demo.db.sample.history);
INSERT INTO demo.db.sample VALUES (2, 'b');
SET VAR second_snapshot = (SELECT snapshot_id FROM demo.db.sample.refs WHERE name = 'main');

-- [CALL rollback_to_snapshot]
CALL demo.system.rollback_to_snapshot('db.sample', first_snapshot);
--> * | *
SELECT * FROM demo.db.sample;
--> 1 | a

-- [CALL set_current_snapshot]
CALL demo.system.set_current_snapshot('db.sample', second_snapshot);
--> * | *
SELECT * FROM demo.db.sample ORDER BY id;
--> 1 | a
--> 2 | b
CALL demo.system.create_tag('db.sample', 's1', first_snapshot);
--> s1 | *
CALL demo.system.set_current_snapshot(table => 'db.sample', ref => 's1');
--> * | *
SELECT * FROM demo.db.sample;
--> 1 | a
CALL demo.system.set_current_snapshot(snapshot_id => second_snapshot, table => 'db.sample');
--> * | *

-- [CALL rollback_to_timestamp]
CALL demo.system.rollback_to_timestamp('db.sample', first_time);
--> * | *
SELECT * FROM demo.db.sample;
--> 1 | a

-- [CALL cherrypick_snapshot]
CALL demo.system.cherrypick_snapshot('db.sample', second_snapshot);
--> * | *
SELECT * FROM demo.db.sample ORDER BY id;
--> 1 | a
--> 2 | b
CALL demo.system.rollback_to_snapshot('db.sample', first_snapshot);
--> * | *
CALL demo.system.cherrypick_snapshot(snapshot_id => second_snapshot, table => 'db.sample');
--> * | *
SELECT * FROM demo.db.sample ORDER BY id;
--> 1 | a
--> 2 | b

-- [CALL fast_forward]
CALL demo.system.create_branch('db.sample', 'audit-branch');
--> audit-branch | *
INSERT INTO demo.db.sample.`branch_audit-branch` VALUES (3, 'c');
CALL demo.system.fast_forward('db.sample', 'main', 'audit-branch');
--> main | * | *
SELECT * FROM demo.db.sample ORDER BY id;
--> 1 | a
--> 2 | b
--> 3 | c

-- [CALL undelete_column]
CALL demo.system.undelete_column('db.sample', 'location');
--! AnalysisException: catalog demo has no procedure system.undelete_column

-- [CALL expire_snapshots]
CALL demo.system.expire_snapshots('db.sample', TIMESTAMP '2021-06-30 00:00:00.000', 100);
--> 0 | 0 | 0 | 0 | 0 | 0

-- [CALL remove_orphan_files]
CALL demo.system.remove_orphan_files(table => 'db.sample', dry_run => true);

-- [CALL rewrite_data_files]
CALL demo.system.rewrite_data_files('db.sample');
--> 0 | 0 | 0 | 0 | 0
CALL demo.system.rewrite_data_files(table => 'db.sample', strategy => 'sort', sort_order => 'id DESC NULLS LAST');
--> 0 | 0 | 0 | 0 | 0
CALL demo.system.rewrite_data_files(table => 'db.sample', strategy => 'sort', sort_order => 'zorder(id, data)');
--> 0 | 0 | 0 | 0 | 0
CALL demo.system.rewrite_data_files(
  table => 'db.sample',
  options => map('min-input-files', '2', 'remove-dangling-deletes', 'true')
);
--> 3 | 1 | * | 0 | 0
CALL demo.system.rewrite_data_files(table => 'db.sample', where => 'id = 3 and data = "foo"');
--> 0 | 0 | 0 | 0 | 0

-- [CALL rewrite_manifests]
CALL demo.system.rewrite_manifests('db.sample');
--> 4 | 1
SELECT operation FROM demo.db.sample.snapshots ORDER BY committed_at DESC LIMIT 1;
--> replace

-- [CALL rewrite_manifests(use_caching)]
CALL demo.system.rewrite_manifests('db.sample', false);
--> 0 | 0

-- [CALL rewrite_manifests(spec_id)]
CALL demo.system.rewrite_manifests(table => 'db.sample', spec_id => 0);
--! AnalysisException: [UNRECOGNIZED_PARAMETER_NAME]

-- [CALL rewrite_manifests(sort_by)]
CALL demo.system.rewrite_manifests(table => 'db.sample', sort_by => array());
--> 0 | 0

-- [CALL rewrite_position_delete_files]
CALL demo.system.rewrite_position_delete_files('db.sample');
--> 0 | 0 | 0 | 0

-- [CALL snapshot]
CALL demo.system.snapshot('db.sample', 'db.snap');
--! AnalysisException: catalog demo has no procedure system.snapshot

-- [CALL migrate]
CALL demo.system.migrate('spark_catalog.db.sample', map('foo', 'bar'));
--! AnalysisException: catalog demo has no procedure system.migrate

-- [CALL add_files from a table of the session]
CALL demo.system.add_files(table => 'db.sample', source_table => 'db.src_tbl');
--! AnalysisException: add_files: source_table 'db.src_tbl' is no folder, such as parquet.`file:///data/orders`

-- [CALL add_files(partition_filter)]
CALL demo.system.add_files(
  table => 'db.sample',
  source_table => 'db.src_tbl',
  partition_filter => map('part_col_1', 'A')
);
--! AnalysisException: [UNRECOGNIZED_PARAMETER_NAME]

-- [CALL create_changelog_view]
CALL demo.system.create_changelog_view(
  table => 'db.sample',
  options => map('start-snapshot-id', string(first_snapshot), 'end-snapshot-id', string(second_snapshot))
);
--> sample_changes
SELECT * FROM sample_changes;
--> 2 | b | INSERT | 0 | *
CALL demo.system.create_changelog_view(
  table => 'db.sample',
  changelog_view => 'my_changes',
  identifier_columns => array('id'),
  net_changes => true
);
--> my_changes

-- [SELECT ... FROM table.changes]
SELECT DISTINCT _change_type FROM demo.db.sample.changes;
--> INSERT

-- [CALL compute_table_stats]
CALL demo.system.compute_table_stats('db.sample');
--> *
CALL demo.system.compute_table_stats(table => 'db.sample', snapshot_id => second_snapshot, columns => array('id', 'data'));
--> *

-- [CALL compute_partition_stats]
CALL demo.system.add_partition_field('db.sample', 'data');
--> data | identity
CALL demo.system.compute_partition_stats('db.sample');
--> *

-- [CALL rewrite_table_path]
CALL demo.system.rewrite_table_path(
    table => 'db.sample',
    source_prefix => 'hdfs://nn:8020/path/to/source_table',
    target_prefix => 's3a://bucket/prefix/db.db/my_table'
);
--! AnalysisException: catalog demo has no procedure system.rewrite_table_path
