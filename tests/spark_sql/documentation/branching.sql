-- The statements of Apache Iceberg's page "Branching and Tagging", in its order.

CREATE TABLE demo.db.history (id bigint, data string);
INSERT INTO demo.db.history VALUES (1, 'a');
DECLARE OR REPLACE VARIABLE first_snapshot BIGINT;
SET VAR first_snapshot = (SELECT snapshot_id FROM demo.db.history.snapshots);
INSERT INTO demo.db.history VALUES (2, 'b');

-- [CREATE TAG ... AS OF VERSION ... RETAIN]
ALTER TABLE demo.db.history CREATE TAG `EOW-01` AS OF VERSION 7 RETAIN 7 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag('db.history', 'EOW-01', first_snapshot, '7 days');
--> EOW-01 | *
ALTER TABLE demo.db.history CREATE TAG `EOM-01` AS OF VERSION 30 RETAIN 180 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag('db.history', 'EOM-01', first_snapshot, '180 days');
--> EOM-01 | *
ALTER TABLE demo.db.history CREATE TAG `EOY-2023` AS OF VERSION 365;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_tag('db.history', 'EOY-2023', first_snapshot);
--> EOY-2023 | *

-- [CREATE BRANCH ... RETAIN ... WITH SNAPSHOT RETENTION]
ALTER TABLE demo.db.history CREATE BRANCH `test-branch` RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch(table => 'db.history', branch => 'test-branch', retain => '7 days',
    min_snapshots_to_keep => 2);
--> test-branch | *
SELECT name, type, snapshot_id = first_snapshot, max_reference_age_in_ms, min_snapshots_to_keep
FROM demo.db.history.refs ORDER BY name;
--> EOM-01 | TAG | true | 15552000000 | NULL
--> EOW-01 | TAG | true | 604800000 | NULL
--> EOY-2023 | TAG | true | NULL | NULL
--> main | BRANCH | false | NULL | NULL
--> test-branch | BRANCH | false | 604800000 | 2

-- [ALTER TABLE ... SET TBLPROPERTIES ('write.wap.enabled')]
ALTER TABLE demo.db.history SET TBLPROPERTIES (
    'write.wap.enabled'='true'
);

-- [CREATE BRANCH ... AS OF VERSION ... RETAIN]
ALTER TABLE demo.db.history CREATE BRANCH `audit-branch` AS OF VERSION 3 RETAIN 7 DAYS;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
DECLARE OR REPLACE VARIABLE current_snapshot BIGINT;
SET VAR current_snapshot = (SELECT snapshot_id FROM demo.db.history.refs WHERE name = 'main');
CALL demo.system.create_branch('db.history', 'audit-branch', current_snapshot, '7 days');
--> audit-branch | *

-- [SET spark.wap.branch]
SET spark.wap.branch = audit-branch;
--> spark.wap.branch | audit-branch
INSERT INTO demo.db.history VALUES (3, 'c');
SELECT id FROM demo.db.history ORDER BY id;
--> 1
--> 2
--> 3
RESET spark.wap.branch;
SELECT id FROM demo.db.history ORDER BY id;
--> 1
--> 2

-- [CALL fast_forward]
CALL demo.system.fast_forward('demo.db.history', 'main', 'audit-branch');
--> main | * | *
SELECT id FROM demo.db.history ORDER BY id;
--> 1
--> 2
--> 3

-- [CREATE TABLE]
CREATE TABLE demo.db.table (id bigint, data string, col float);

-- [INSERT INTO]
INSERT INTO demo.db.table VALUES (1, 'a', 1.0), (2, 'b', 2.0), (3, 'c', 3.0);
SELECT * FROM demo.db.table ORDER BY id;
--> 1 | a | 1.0
--> 2 | b | 2.0
--> 3 | c | 3.0

-- [CREATE BRANCH]
ALTER TABLE demo.db.table CREATE BRANCH test_branch;
--! ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'CREATE'
CALL demo.system.create_branch('db.table', 'test_branch');
--> test_branch | *
SELECT * FROM demo.db.table.branch_test_branch ORDER BY id;
--> 1 | a | 1.0
--> 2 | b | 2.0
--> 3 | c | 3.0
CALL demo.system.create_tag('db.table', 'test_tag');
--> test_tag | *

-- [ALTER TABLE ... DROP COLUMN]
ALTER TABLE demo.db.table DROP COLUMN col;

-- [ALTER TABLE ... ADD COLUMN]
ALTER TABLE demo.db.table ADD COLUMN new_col date;
INSERT INTO demo.db.table VALUES (4, 'd', date('2024-04-04')), (5, 'e', date('2024-05-05'));
SELECT * FROM demo.db.table ORDER BY id;
--> 1 | a | NULL
--> 2 | b | NULL
--> 3 | c | NULL
--> 4 | d | 2024-04-04
--> 5 | e | 2024-05-05

-- [SELECT ... FROM table.branch_name]
SELECT * FROM demo.db.table.branch_test_branch ORDER BY id;
--> 1 | a | NULL
--> 2 | b | NULL
--> 3 | c | NULL

-- [VERSION AS OF 'branch']
SELECT * FROM demo.db.table VERSION AS OF 'test_branch' ORDER BY id;
--> 1 | a | NULL
--> 2 | b | NULL
--> 3 | c | NULL

-- [SELECT ... FROM table.refs]
SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms
FROM demo.db.table.refs ORDER BY name;
--> main | BRANCH | NULL | NULL | NULL
--> test_branch | BRANCH | NULL | NULL | NULL
--> test_tag | TAG | NULL | NULL | NULL

-- [VERSION AS OF a snapshot]
DECLARE OR REPLACE VARIABLE query STRING;
SET VAR query = (SELECT 'SELECT * FROM demo.db.table VERSION AS OF ' || snapshot_id || ' ORDER BY id'
                 FROM demo.db.table.refs WHERE name = 'test_branch');
EXECUTE IMMEDIATE query;
--> 1 | a | 1.0
--> 2 | b | 2.0
--> 3 | c | 3.0
SELECT * FROM demo.db.table VERSION AS OF 'test_tag' ORDER BY id;
--> 1 | a | 1.0
--> 2 | b | 2.0
--> 3 | c | 3.0

-- [INSERT INTO table.branch_name]
INSERT INTO demo.db.table.branch_test_branch VALUES (6, 'e', date('2024-06-06')), (7, 'g', date('2024-07-07'));
SELECT * FROM demo.db.table.branch_test_branch ORDER BY id;
--> 1 | a | NULL
--> 2 | b | NULL
--> 3 | c | NULL
--> 6 | e | 2024-06-06
--> 7 | g | 2024-07-07
SELECT count(*) FROM demo.db.table;
--> 5
