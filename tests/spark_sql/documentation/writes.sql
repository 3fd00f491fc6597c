-- The SQL of Apache Iceberg's page "Spark Writes", in its order.

CREATE TABLE demo.db.source (id bigint, op string, event_time bigint);
INSERT INTO demo.db.source VALUES (1, 'delete', 1), (2, 'increment', 1), (3, 'increment', 1), (8, 'new', 0), (9, 'new', 9);

-- [INSERT INTO]
CREATE TABLE demo.db.table (id bigint, data string);
INSERT INTO demo.db.table VALUES (1, 'a'), (2, 'b');
INSERT INTO demo.db.table SELECT id, op FROM demo.db.source WHERE id > 2;
SELECT * FROM demo.db.table ORDER BY id;
--> 1 | a
--> 2 | b
--> 3 | increment
--> 8 | new
--> 9 | new

-- [MERGE INTO]
CREATE TABLE demo.db.target (id bigint, count int, status string);
INSERT INTO demo.db.target VALUES (1, 1, 'x'), (2, NULL, 'x'), (3, 5, 'x'), (4, 4, 'x');
MERGE INTO demo.db.target t   -- a target table
USING (SELECT * FROM demo.db.source) s
ON t.id = s.id
WHEN MATCHED AND s.op = 'delete' THEN DELETE
WHEN MATCHED AND t.count IS NULL AND s.op = 'increment' THEN UPDATE SET t.count = 0
WHEN MATCHED AND s.op = 'increment' THEN UPDATE SET t.count = t.count + 1
WHEN NOT MATCHED AND s.event_time > 5 THEN INSERT (id, count) VALUES (s.id, 1)
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET status = 'invalid';
SELECT * FROM demo.db.target ORDER BY id;
--> 2 | 0 | x
--> 3 | 6 | x
--> 4 | 4 | invalid
--> 9 | 1 | NULL
MERGE INTO demo.db.table t
USING (SELECT 7 AS id, 'seven' AS data) s
ON t.id = s.id
WHEN NOT MATCHED THEN INSERT *;
SELECT data FROM demo.db.table WHERE id = 7;
--> seven

-- [INSERT OVERWRITE]
CREATE TABLE demo.my_app.logs (
    uuid string NOT NULL,
    level string NOT NULL,
    ts timestamp NOT NULL,
    message string)
USING iceberg
PARTITIONED BY (level, hours(ts));
INSERT INTO demo.my_app.logs VALUES
    ('u1', 'INFO', timestamp'2020-07-01 10:00:00', 'twice'), ('u1', 'INFO', timestamp'2020-07-01 10:00:00', 'twice'),
    ('u2', 'WARN', timestamp'2020-07-01 11:00:00', 'once'), ('u3', 'INFO', timestamp'2020-07-02 10:00:00', 'later');
SET spark.sql.sources.partitionOverwriteMode = dynamic;
--> spark.sql.sources.partitionOverwriteMode | dynamic
INSERT OVERWRITE demo.my_app.logs
SELECT uuid, first(level), first(ts), first(message)
FROM demo.my_app.logs
WHERE cast(ts as date) = '2020-07-01'
GROUP BY uuid;
RESET spark.sql.sources.partitionOverwriteMode;
SELECT uuid, message FROM demo.my_app.logs ORDER BY uuid;
--> u1 | twice
--> u2 | once
--> u3 | later

-- [INSERT OVERWRITE ... PARTITION]
-- The page selects the column level too; Spark wants only the columns that the clause does not fix.
INSERT OVERWRITE demo.my_app.logs
PARTITION (level = 'INFO')
SELECT uuid, first(level), first(ts), first(message)
FROM demo.my_app.logs
WHERE level = 'INFO'
GROUP BY uuid;
--! AnalysisException: [INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS]
INSERT OVERWRITE demo.my_app.logs
PARTITION (level = 'INFO')
SELECT uuid, first(ts), upper(first(message))
FROM demo.my_app.logs
WHERE level = 'INFO'
GROUP BY uuid;
SELECT uuid, level, message FROM demo.my_app.logs ORDER BY uuid;
--> u1 | INFO | TWICE
--> u2 | WARN | once
--> u3 | INFO | LATER

-- [DELETE FROM]
CREATE TABLE demo.db.all_events (id bigint, session_time bigint, ignored boolean, ts timestamp, c1 string, c2 string);
INSERT INTO demo.db.all_events VALUES
    (1, 10, false, timestamp'2020-05-10 00:00:00', 'x', 'x'), (2, 20, false, timestamp'2020-06-10 00:00:00', 'x', 'x'),
    (3, 30, false, timestamp'2020-05-20 00:00:00', 'x', 'x'), (4, 40, false, timestamp'2020-07-10 00:00:00', 'x', 'x');
CREATE TABLE demo.db.good_events AS SELECT 25 AS session_time;
CREATE TABLE demo.db.orders AS SELECT oid, 'sold' AS order_status FROM VALUES (1), (2), (3) AS v(oid);
CREATE TABLE demo.db.returned_orders AS SELECT 2 AS oid;
DELETE FROM demo.db.all_events
WHERE ts >= '2020-05-01 00:00:00' and ts < '2020-05-15 00:00:00';
SELECT id FROM demo.db.all_events ORDER BY id;
--> 2
--> 3
--> 4
DELETE FROM demo.db.all_events
WHERE session_time < (SELECT min(session_time) FROM demo.db.good_events);
SELECT id FROM demo.db.all_events ORDER BY id;
--> 3
--> 4

-- [UPDATE]
UPDATE demo.db.all_events
SET c1 = 'update_c1', c2 = 'update_c2'
WHERE ts >= '2020-05-01 00:00:00' and ts < '2020-06-01 00:00:00';
UPDATE demo.db.all_events
SET session_time = 0, ignored = true
WHERE session_time < (SELECT min(session_time) + 10 FROM demo.db.good_events);
SELECT id, session_time, ignored, c1, c2 FROM demo.db.all_events ORDER BY id;
--> 3 | 0 | true | update_c1 | update_c2
--> 4 | 40 | false | x | x
UPDATE demo.db.orders AS t1
SET order_status = 'returned'
WHERE EXISTS (SELECT oid FROM demo.db.returned_orders WHERE t1.oid = oid);
SELECT * FROM demo.db.orders ORDER BY oid;
--> 1 | sold
--> 2 | returned
--> 3 | sold
DELETE FROM demo.db.orders AS t1
WHERE EXISTS (SELECT oid FROM demo.db.returned_orders WHERE t1.oid = oid);
SELECT * FROM demo.db.orders ORDER BY oid;
--> 1 | sold
--> 3 | sold

-- [INSERT INTO table.branch_name]
CREATE TABLE demo.db.branched (id bigint, val string);
INSERT INTO demo.db.branched VALUES (0, 'z');
CALL demo.system.create_branch('db.branched', 'audit');
--> audit | *
INSERT INTO demo.db.branched.branch_audit VALUES (1, 'a'), (2, 'b');

-- [MERGE INTO table.branch_name]
MERGE INTO demo.db.branched.branch_audit t
USING (SELECT 1 AS id, 'merged' AS val) s
ON t.id = s.id
WHEN MATCHED THEN UPDATE SET *;

-- [UPDATE table.branch_name]
UPDATE demo.db.branched.branch_audit AS t1
SET val = 'c'
WHERE id = 0;

-- [DELETE FROM table.branch_name]
DELETE FROM demo.db.branched.branch_audit WHERE id = 2;
SELECT * FROM demo.db.branched.branch_audit ORDER BY id;
--> 0 | c
--> 1 | merged
SELECT * FROM demo.db.branched;
--> 0 | z

-- [SET spark.wap.branch]
ALTER TABLE demo.db.branched SET TBLPROPERTIES ('write.wap.enabled' = 'true');
CALL demo.system.create_branch('db.branched', 'audit-branch');
--> audit-branch | *
SET spark.wap.branch = audit-branch;
--> spark.wap.branch | audit-branch
INSERT INTO demo.db.branched VALUES (3, 'c');
RESET spark.wap.branch;
SELECT id FROM demo.db.branched.`branch_audit-branch` ORDER BY id;
--> 0
--> 3
SELECT id FROM demo.db.branched;
--> 0

-- [ALTER TABLE ... SET TBLPROPERTIES ('write.spark.accept-any-schema')]
ALTER TABLE demo.db.table SET TBLPROPERTIES (
  'write.spark.accept-any-schema'='true'
);

-- [INSERT INTO with write.distribution-mode]
CREATE TABLE demo.db.sample (
    id bigint,
    data string,
    category string,
    ts timestamp)
USING iceberg
PARTITIONED BY (days(ts), category);
ALTER TABLE demo.db.sample SET TBLPROPERTIES ('write.distribution-mode' = 'none');
INSERT INTO demo.db.sample SELECT id, op, op, timestamp'2020-07-01 10:00:00' FROM demo.db.source;
ALTER TABLE demo.db.sample SET TBLPROPERTIES ('write.distribution-mode' = 'hash');
INSERT INTO demo.db.sample SELECT id, op, op, timestamp'2020-07-01 10:00:00' FROM demo.db.source;
ALTER TABLE demo.db.sample SET TBLPROPERTIES ('write.distribution-mode' = 'range');
INSERT INTO demo.db.sample SELECT id, op, op, timestamp'2020-07-01 10:00:00' FROM demo.db.source;
SELECT count(*), count(DISTINCT _partition) FROM demo.db.sample;
--> 15 | 3
