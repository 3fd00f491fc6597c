-- SELECT: filters, columns, nested columns, joins, subqueries, views, cached tables, metadata columns.

CREATE TABLE demo.db.t (id bigint, name string, who struct<city: string, age: int>)
PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '3');
SELECT count(*) FROM demo.db.t;
--> 0
INSERT INTO demo.db.t
SELECT id, concat('n', id), named_struct('city', if(id < 2, 'Oslo', 'Rome'), 'age', int(id * 10)) FROM range(4);
SELECT * FROM demo.db.t WHERE id > 1 ORDER BY id;
--> 2 | n2 | {Rome, 20}
--> 3 | n3 | {Rome, 30}
SELECT count(*), sum(id), min(NAME) FROM demo.db.t;
--> 4 | 6 | n0
SELECT who.city, max(who.age) FROM demo.db.t GROUP BY who.city ORDER BY 1;
--> Oslo | 10
--> Rome | 30

-- The same table twice in one query.
SELECT a.id, b.name FROM demo.db.t a JOIN demo.db.t b ON a.id = b.id + 1 WHERE a.who.age > 10 ORDER BY 1;
--> 2 | n1
--> 3 | n2
SELECT count(*) FROM (SELECT id FROM demo.db.t UNION ALL SELECT id + 1 FROM demo.db.t);
--> 8
WITH old AS (SELECT * FROM demo.db.t WHERE who.age >= 20)
SELECT id, (SELECT max(id) FROM demo.db.t) FROM old
WHERE EXISTS (SELECT 1 FROM demo.db.t x WHERE x.id = old.id - 1) ORDER BY id;
--> 2 | 3
--> 3 | 3
SELECT name FROM demo.db.t WHERE id IN (SELECT max(id) FROM demo.db.t);
--> n3

-- Metadata columns, which * does not select.
SELECT id, _pos, _spec_id, _partition, _row_id, _last_updated_sequence_number, endswith(_file, '.parquet')
FROM demo.db.t WHERE id = 3;
--> 3 | 0 | 0 | {1} | 3 | 1 | true
CREATE TABLE demo.db.parts (id bigint, city string) PARTITIONED BY (city, bucket(2, id), truncate(10, id));
INSERT INTO demo.db.parts VALUES (17, 'Oslo');
SELECT _partition.id_trunc, id FROM demo.db.parts WHERE _partition.id_trunc = 10;
--> 10 | 17

-- Views and cached tables see what is written later.
CREATE TEMPORARY VIEW romans AS SELECT id FROM demo.db.t WHERE who.city = 'Rome';
CACHE TABLE demo.db.t;
SELECT count(*) FROM romans;
--> 2
INSERT INTO demo.db.t VALUES (9, 'n9', named_struct('city', 'Rome', 'age', 90));
SELECT count(*) FROM romans;
--> 3
UNCACHE TABLE demo.db.t;
DROP VIEW romans;
