-- Time travel by branch and tag, branches and tags as names, metadata tables. (Snapshot ids and times: test_time_travel.)

CREATE TABLE demo.db.t (id bigint);
INSERT INTO demo.db.t VALUES (1);
SELECT count(*) FROM demo.db.t.snapshots;
--> 1
SELECT operation, summary['added-records'] FROM demo.db.t.snapshots;
--> append | 1
SELECT name, type FROM demo.db.t.refs;
--> main | BRANCH
SELECT is_current_ancestor, parent_id FROM demo.db.t.history;
--> true | NULL
SELECT * FROM demo.db.t VERSION AS OF 'main';
--> 1
SELECT * FROM demo.db.t.branch_main;
--> 1
SELECT * FROM demo.db.t VERSION AS OF 'absent';
--! AnalysisException: absent
SELECT * FROM demo.db.t.absent;
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
INSERT INTO demo.db.t.snapshots SELECT * FROM demo.db.t.snapshots;
--! AnalysisException: [UNSUPPORTED_FEATURE.TABLE_OPERATION]
