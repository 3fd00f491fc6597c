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

-- Filters of many kinds, also on partitions, fields of structs and rows without a value.
CREATE TABLE demo.db.visits (id int, day date, tags array<string>, counts map<string, int>, place struct<at: struct<x: int>>)
PARTITIONED BY (months(day));
INSERT INTO demo.db.visits VALUES
  (1, DATE '2026-01-31', array('a', 'b'), map('k', 1), named_struct('at', named_struct('x', 10))),
  (2, DATE '2026-02-01', array(), map(), named_struct('at', NULL)),
  (3, NULL, NULL, NULL, NULL);
SELECT id FROM demo.db.visits WHERE day BETWEEN DATE '2026-01-15' AND DATE '2026-01-31';
--> 1
SELECT id FROM demo.db.visits WHERE day IS NULL OR year(day) = 2026 AND month(day) = 2 ORDER BY id;
--> 2
--> 3
SELECT id FROM demo.db.visits WHERE place.at.x IS NOT NULL AND id IN (1, 2, 7);
--> 1
SELECT id FROM demo.db.visits WHERE NOT (place.at.x <=> 10) ORDER BY id;
--> 2
--> 3
SELECT id, get(tags, 0), counts['k'], place.at.x, size(tags) FROM demo.db.visits ORDER BY id;
--> 1 | a | 1 | 10 | 2
--> 2 | NULL | NULL | NULL | 0
--> 3 | NULL | NULL | NULL | NULL
SELECT id, tag FROM demo.db.visits LATERAL VIEW explode(tags) AS tag ORDER BY tag;
--> 1 | a
--> 1 | b
SELECT id, sum(id) OVER (ORDER BY id) FROM demo.db.visits ORDER BY id DESC LIMIT 2;
--> 3 | 6
--> 2 | 3

-- Metadata columns, which * does not select.
CREATE TABLE demo.db.one (id bigint) PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '3');
INSERT INTO demo.db.one VALUES (3);
SELECT *, _pos, _spec_id, _partition, _row_id, _last_updated_sequence_number, endswith(_file, '.parquet')
FROM demo.db.one;
--> 3 | 0 | 0 | {1} | 0 | 1 | true
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
