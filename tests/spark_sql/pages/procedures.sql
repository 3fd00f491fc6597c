-- CALL: actions on tables. They are in the namespace system of each catalog.

CREATE TABLE demo.db.t (id bigint NOT NULL, city string);
INSERT INTO demo.db.t VALUES (1, 'Oslo');
DECLARE OR REPLACE VARIABLE first bigint;
SET VAR first = (SELECT snapshot_id FROM demo.db.t.snapshots);
INSERT INTO demo.db.t VALUES (2, 'Rome');
DECLARE OR REPLACE VARIABLE second bigint;
SET VAR second = (SELECT max_by(snapshot_id, committed_at) FROM demo.db.t.snapshots);

-- The current snapshot: arguments by position or by name, the name of the table with or without the catalog.
CALL demo.system.rollback_to_snapshot('db.t', first);
--> * | *
SELECT * FROM demo.db.t;
--> 1 | Oslo
CALL demo.system.set_current_snapshot(table => 'demo.db.t', snapshot_id => second);
--> * | *
SELECT count(*) FROM demo.db.t;
--> 2
CALL demo.system.rollback_to_timestamp('db.t', TIMESTAMP '2100-01-01 00:00:00');
--> * | *
CALL demo.system.rollback_to_timestamp('db.t', TIMESTAMP '2000-01-01 00:00:00');
--! AnalysisException: no snapshot at or before
CALL demo.system.ANCESTORS_OF('db.t');
--> * | *
--> * | *
CALL demo.system.ancestors_of('db.t', first);
--> * | *
CALL demo.system.rollback_to_snapshot('db.t', 5);
--! AnalysisException: 5
CALL demo.system.set_current_snapshot('db.t');
--! AnalysisException: give either snapshot_id or ref

-- Branches and tags.
CALL demo.system.create_tag('db.t', 'v1', first);
--> v1 | *
--iceberg [own-grammar]: tags are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.t CREATE TAG v1
CALL demo.system.create_branch('db.t', 'audit');
--> audit | *
--iceberg [own-grammar]: branches are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.t CREATE BRANCH audit
INSERT INTO demo.db.t.branch_audit VALUES (3, 'Rome');
CALL demo.system.fast_forward('db.t', 'main', 'audit');
--> main | * | *
SELECT id FROM demo.db.t ORDER BY id;
--> 1
--> 2
--> 3
CALL demo.system.set_current_snapshot(table => 'db.t', ref => 'audit');
--> * | *
CALL demo.system.fast_forward('db.t', 'main', 'absent');
--! AnalysisException: absent
CALL demo.system.cherrypick_snapshot('db.t', 5);
--! AnalysisException: 5
CALL demo.system.publish_changes('db.t', 'load-7');
--! AnalysisException: no snapshot was staged with wap_id 'load-7'

-- Manifests: how many were rewritten, and how many are new.
CALL demo.system.rewrite_manifests('db.t');
--> 3 | 1
CALL demo.system.rewrite_manifests(table => 'db.t', use_caching => true);
--> 0 | 0

-- The layout of new files, and format versions.
CALL demo.system.add_partition_field('db.t', 'bucket(4, id)', 'shard');
--> shard | bucket[4]
--iceberg [own-grammar]: partition fields are added by a grammar of its own
--iceberg; ALTER TABLE demo.db.t ADD PARTITION FIELD bucket(4, id) AS shard
CALL demo.system.replace_partition_field('db.t', 'shard', 'city');
--> city | identity
--iceberg [own-grammar]: partition fields are replaced by a grammar of its own
--iceberg; ALTER TABLE demo.db.t REPLACE PARTITION FIELD shard WITH city
DESCRIBE demo.db.t;
--> id | bigint | NULL
--> city | string | NULL
--> # Partition Information |  |
--> # col_name | data_type | comment
--> city | string | NULL
CALL demo.system.drop_partition_field('db.t', 'city');
--iceberg [own-grammar]: partition fields are dropped by a grammar of its own
--iceberg; ALTER TABLE demo.db.t DROP PARTITION FIELD city
CALL demo.system.write_ordered_by('db.t', array('city desc', 'id'));
--> 1
--iceberg [own-grammar]: the order is set by a grammar of its own
--iceberg; ALTER TABLE demo.db.t WRITE ORDERED BY city DESC, id
SHOW TBLPROPERTIES demo.db.t ('sort-order');
--> sort-order | city DESC NULLS LAST, id ASC NULLS FIRST
CALL demo.system.set_identifier_fields('db.t', array('id'));
--> id
--iceberg [own-grammar]: identifier fields are set by a grammar of its own
--iceberg; ALTER TABLE demo.db.t SET IDENTIFIER FIELDS id
SHOW TBLPROPERTIES demo.db.t ('identifier-fields');
--> identifier-fields | [id]
CALL demo.system.upgrade('db.t', 3);
--> 2 | 3
--iceberg [own-grammar]: the version is a property of the table
--iceberg; ALTER TABLE demo.db.t SET TBLPROPERTIES ('format-version' = '3')
SHOW TBLPROPERTIES demo.db.t ('format-version');
--> format-version | 3
CALL demo.system.drop_branch('db.t', 'audit');
--> audit | *
--iceberg [own-grammar]: branches are dropped by a grammar of its own
--iceberg; ALTER TABLE demo.db.t DROP BRANCH audit
INSERT INTO demo.db.t VALUES (4, 'Bern');
SELECT * FROM demo.db.t ORDER BY id;
--> 1 | Oslo
--> 2 | Rome
--> 3 | Rome
--> 4 | Bern

-- Tables without rows, and wrong calls.
CREATE TABLE demo.db.empty (id int);
CALL demo.system.rewrite_manifests('db.empty');
--> 0 | 0
CALL demo.system.ancestors_of('db.empty');
--iceberg [empty-ancestors]: it looks for a snapshot
--iceberg! Cannot find snapshot: -1
CALL demo.system.ancestors_of('db.absent');
--! AnalysisException: absent
CALL demo.system.rollback_to_snapshot('db.t');
--! AnalysisException: [REQUIRED_PARAMETER_NOT_FOUND]
CALL demo.system.ancestors_of('db.t', other => 1);
--! AnalysisException: [UNRECOGNIZED_PARAMETER_NAME]
CALL demo.system.fly('db.t');
--! AnalysisException: no procedure system.fly

-- All procedures.
SHOW PROCEDURES IN demo.system;
--> demo | [system] | system | add_files
--> demo | [system] | system | add_partition_field
--> demo | [system] | system | ancestors_of
--> demo | [system] | system | cherrypick_snapshot
--> demo | [system] | system | compute_partition_stats
--> demo | [system] | system | compute_table_stats
--> demo | [system] | system | create_branch
--> demo | [system] | system | create_changelog_view
--> demo | [system] | system | create_tag
--> demo | [system] | system | drop_branch
--> demo | [system] | system | drop_partition_field
--> demo | [system] | system | drop_tag
--> demo | [system] | system | expire_snapshots
--> demo | [system] | system | fast_forward
--> demo | [system] | system | publish_changes
--> demo | [system] | system | register_table
--> demo | [system] | system | remove_orphan_files
--> demo | [system] | system | replace_partition_field
--> demo | [system] | system | rewrite_data_files
--> demo | [system] | system | rewrite_manifests
--> demo | [system] | system | rewrite_position_delete_files
--> demo | [system] | system | rollback_to_snapshot
--> demo | [system] | system | rollback_to_timestamp
--> demo | [system] | system | set_current_snapshot
--> demo | [system] | system | set_identifier_fields
--> demo | [system] | system | upgrade
--> demo | [system] | system | write_ordered_by
--iceberg [procedures]: there are procedures for maintenance, and none for what its grammar does
--iceberg> demo | [system] | system | rollback_to_snapshot
--iceberg> demo | [system] | system | rollback_to_timestamp
--iceberg> demo | [system] | system | set_current_snapshot
--iceberg> demo | [system] | system | cherrypick_snapshot
--iceberg> demo | [system] | system | rewrite_data_files
--iceberg> demo | [system] | system | rewrite_manifests
--iceberg> demo | [system] | system | remove_orphan_files
--iceberg> demo | [system] | system | expire_snapshots
--iceberg> demo | [system] | system | migrate
--iceberg> demo | [system] | system | snapshot
--iceberg> demo | [system] | system | add_files
--iceberg> demo | [system] | system | ancestors_of
--iceberg> demo | [system] | system | register_table
--iceberg> demo | [system] | system | publish_changes
--iceberg> demo | [system] | system | create_changelog_view
--iceberg> demo | [system] | system | rewrite_position_delete_files
--iceberg> demo | [system] | system | fast_forward
--iceberg> demo | [system] | system | compute_table_stats
--iceberg> demo | [system] | system | compute_partition_stats
--iceberg> demo | [system] | system | rewrite_table_path
CALL demo.system.expire_snapshots('db.t');
--> 0 | 0 | 0 | 0 | 0 | 0
