-- DataFrames: format("icefloe"), writeTo, saveAsTable, and options of readers and writers. (Streams: docs/spark-streams.md.)

spark.range(3).write.format("icefloe").saveAsTable("demo.db.t");
spark.read.format("icefloe").load("demo.db.t").orderBy("id");
--> 0
--> 1
--> 2

-- A format writes to a table that exists, by its name.
spark.range(3, 5).write.format("icefloe").mode("append").save("demo.db.t");
spark.table("demo.db.t").count();
--> 5
spark.range(7, 8).write.format("icefloe").mode("overwrite").save("demo.db.t");
spark.read.format("icefloe").load("demo.db.t");
--> 7
spark.range(1).write.format("icefloe").mode("append").save("demo.db.absent");
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
spark.read.format("icefloe").load("demo.db.absent");
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
spark.read.format("icefloe").load();
--! AnalysisException: needs the name of a table or its location

-- It reads branches, metadata tables and states of the past.
spark.read.format("icefloe").option("branch", "main").load("demo.db.t");
--> 7
spark.read.format("icefloe").load("demo.db.t.branch_main").where("id > 6").selectExpr("id * 2");
--> 14
spark.read.format("icefloe").load("demo.db.t.snapshots").orderBy("committed_at").select("operation");
--> append
--> append
--> overwrite
spark.read.option("versionAsOf", spark.table("demo.db.t.snapshots").first().snapshot_id).table("demo.db.t").count();
--> 3
spark.read.format("icefloe").option("timestampAsOf", "2100-01-01").load("demo.db.t");
--> 7
spark.read.option("snapshot-id", spark.table("demo.db.t.snapshots").first().snapshot_id).table("demo.db.t").count();
--> 3
--iceberg [reader-options]: version 1.12 refuses the option
--iceberg! Time travel option `snapshot-id` is no longer supported

-- A temporary view of a table, by the format.
CREATE TEMPORARY VIEW by_format USING icefloe OPTIONS (path 'demo.db.t');
--iceberg [using-icefloe]: the word is ours
--iceberg; CREATE TEMPORARY VIEW by_format USING iceberg OPTIONS (path 'demo.db.t')
SELECT * FROM by_format;
--> 7

-- writeTo creates, replaces, appends and overwrites.
spark.range(1).writeTo("demo.db.u").tableProperty("team", "sales").partitionedBy(F.partitioning.bucket(2, "id")).create();
spark.range(1).writeTo("demo.db.u").create();
--! AnalysisException: [TABLE_OR_VIEW_ALREADY_EXISTS]
spark.range(1, 3).writeTo("demo.db.u").append();
spark.range(5, 6).writeTo("demo.db.u").overwrite(F.col("id") <= 9);
spark.table("demo.db.u");
--> 5
spark.range(6, 7).writeTo("demo.db.u").overwritePartitions();
SHOW TBLPROPERTIES demo.db.u ('team');
--> team | sales
spark.range(2).writeTo("demo.db.u").replace();
spark.table("demo.db.u").orderBy("id");
--> 0
--> 1
spark.range(9, 10).writeTo("demo.db.u").createOrReplace();
spark.range(9, 10).writeTo("demo.db.absent").append();
--! AnalysisException: [TABLE_OR_VIEW_NOT_FOUND]
spark.range(9, 10).write.insertInto("demo.db.u");
spark.range(3).write.mode("append").saveAsTable("demo.db.u");
spark.table("demo.db.u").groupBy().agg(F.count("id"), F.sum("id"));
--> 5 | 21
spark.range(1).write.mode("overwrite").saveAsTable("demo.db.u");
spark.table("demo.db.u");
--> 0

-- Spark checks columns and types.
spark.range(1).selectExpr("id", "'x' AS extra").writeTo("demo.db.u").append();
--! AnalysisException: [INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS]
spark.range(1).selectExpr("'x' AS id").writeTo("demo.db.u").append();
--! AnalysisException: [INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST]
spark.range(1).selectExpr("id AS other").writeTo("demo.db.u").append();
--! AnalysisException: [INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_COLUMNS]

-- Options of a writer: the branch, which must exist. Entries for the summary of the snapshot are ignored.
CALL demo.system.create_branch('db.u', 'audit');
--> audit | *
--iceberg [own-grammar]: branches are made by a grammar of its own
--iceberg; ALTER TABLE demo.db.u CREATE BRANCH audit
spark.range(6, 7).writeTo("demo.db.u").option("branch", "audit").append();
SELECT name FROM demo.db.u.refs ORDER BY name;
--> audit
--> main
SELECT * FROM demo.db.u ORDER BY id;
--> 0
--iceberg [writer-branch]: the option is ignored, and rows are written to main
--iceberg> 0
--iceberg> 6
spark.range(1, 2).writeTo("demo.db.u").option("snapshot-property.team", "sales").append();
SELECT max_by(summary['team'], committed_at) FROM demo.db.u.snapshots;
--> sales
spark.catalog.tableExists("demo.db.u");
--> true

-- A DataFrame reads the state of the table in which it was made.
spark.range(1).writeTo("demo.db.state").create();
spark.table("demo.db.state").transform(lambda before: [spark.sql("INSERT INTO demo.db.state VALUES (1)"), before][1]).orderBy("id");
--> 0
--iceberg [state-of-frames]: it reads the newest state
--iceberg> 0
--iceberg> 1
spark.table("demo.db.state").orderBy("id");
--> 0
--> 1

-- An option that is not known is refused.
spark.range(1, 2).writeTo("demo.db.u").option("no-such-option", "1").append();
--! AnalysisException: option 'no-such-option' is not known for a write
--iceberg [unknown-options]: options that are not known are ignored
