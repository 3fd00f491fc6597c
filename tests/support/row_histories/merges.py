"""Random merges, and what they do to the model."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from support.row_histories.assignments import Assignment, draw_assignments
from support.row_histories.columns import VALUES, Row, value_in
from support.row_histories.conditions import Condition, draw_condition
from support.row_histories.evolution import EvolvingRows
from support.row_histories.model import CHANGED, CORE, TOKEN

TESTED = ("int", "bigint", "string", "decimal(9,2)", "decimal(12,2)", "boolean")
Pair = tuple[Row | None, Row | None]  # of the table and of the source


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A clause: ``tests`` says whether it takes a pair of rows, ``makes`` what comes of it; none if nothing does."""

    add: Callable[[Any], Any]
    tests: Callable[[Pair], bool]
    makes: Callable[[Pair], Row | None]


class MergingRows(EvolvingRows):
    """A table that sources are merged into."""

    def merge(self, rng: random.Random) -> None:
        branch = self.branch_for(rng)
        on = rng.choice((["id"], ["id", "part"], ["uid"]))
        sources = self._sources(rng, on, branch)
        keys = [self.columns_by_name[name] for name in on]

        def key(row: Row) -> tuple[object, ...]:
            return tuple(value_in(row, column) for column in keys)

        by_key = {key(row): row for row in sources if None not in key(row)}
        pairs: list[Pair] = [(row, by_key.get(key(row))) for row in self.rows[branch]]
        matched = [id(source) for _, source in pairs if source is not None]
        rest = [row for row in sources if id(row) not in matched]
        clauses = self._clauses(rng, several=len(set(matched)) < len(matched))
        builder = self.table.merge(self.engine.data(self.arrow(sources)), on=on, branch=branch)
        for clause in clauses["matched"] + clauses["not matched"] + clauses["by source"]:
            clause.add(builder)
        before = self.head(branch)
        result = builder.execute()
        kept, figures = [], {"updated": 0, "deleted": 0, "inserted": 0}
        for pair in pairs:
            taken = next((c for c in clauses["by source" if pair[1] is None else "matched"] if c.tests(pair)), None)
            new = pair[0] if taken is None else taken.makes(pair)
            figures["deleted" if new is None else "updated"] += taken is not None
            kept += [] if new is None else [new]
        for row in rest:
            taken = next((c for c in clauses["not matched"] if c.tests((None, row))), None)
            new = None if taken is None else taken.makes((None, row))
            kept += [] if new is None else [new]
            figures["inserted"] += new is not None
        counts = {"updated": result.rows_updated, "deleted": result.rows_deleted, "inserted": result.rows_inserted}
        assert counts == figures, f"{result}: {figures}"
        assert (self.head(branch) == before) == (sum(figures.values()) == 0), "a snapshot for nothing"
        self.put(branch, kept)

    def _sources(self, rng: random.Random, on: Sequence[str], branch: str) -> list[Row]:
        """Rows whose keys are their own, but for nulls."""
        rows, _ = self.new_rows(rng, 5, least=0)
        keys = [self.columns_by_name[name].key for name in on]
        if on == ["uid"] and len(self.rows[branch]) > 0:
            for row in rows[:3]:
                row[keys[0]] = rng.choice(self.rows[branch])[keys[0]]
        return list({repr([row[key] for key in keys]): row for row in rows}.values())

    def _clauses(self, rng: random.Random, *, several: bool) -> dict[str, list[Clause]]:
        found: dict[str, list[Clause]] = {"matched": [], "not matched": [], "by source": []}
        if rng.random() < 0.4:
            found["matched"].append(self._delete(rng, "t."))
        if rng.random() < 0.7:
            found["matched"].append(self._update(rng) if several or rng.random() < 0.5 else _update_all(self))
        if rng.random() < 0.7 or len(found["matched"]) == 0:
            found["not matched"].append(self._insert(rng))
        if rng.random() < 0.3:
            found["by source"].append(self._by_source(rng))
        return found

    def _condition(self, rng: random.Random, prefix: str) -> Condition:
        return draw_condition(rng, self.columns, 1, kinds=TESTED, prefix=prefix)

    def _delete(self, rng: random.Random, prefix: str) -> Clause:
        condition = self._condition(rng, prefix)
        return Clause(
            add=lambda merge: merge.when_matched_delete(condition.text),
            tests=lambda pair: pair[0] is not None and condition.holds(pair[0]),
            makes=lambda pair: None,
        )

    def _update(self, rng: random.Random) -> Clause:
        """Some columns, some of them from the source."""
        condition = self._condition(rng, "s.")
        assignments = draw_assignments(rng, self.columns, CORE, "t.")
        taken = [each for each in self.columns if each.name not in CORE and each.kind.name in VALUES][:1]
        texts = {each.name: each.text for each in assignments} | {each.name: f"s.{each.name}" for each in taken}
        if len(texts) == 0:
            texts, taken = {"city": "s.city"}, [self.columns_by_name["city"]]

        def makes(pair: Pair) -> Row:
            row, source = pair
            assert row is not None
            assert source is not None
            own = {each.key: each.of(row) for each in assignments}
            return _changed(row, own | {each.key: value_in(source, each) for each in taken})

        return Clause(
            add=lambda merge: merge.when_matched_update(texts, condition.text),
            tests=lambda pair: pair[1] is not None and condition.holds(pair[1]),
            makes=makes,
        )

    def _insert(self, rng: random.Random) -> Clause:
        """All columns, or the first ones: the others get their default."""
        condition = self._condition(rng, "s.") if rng.random() < 0.5 else None
        some = [column for column in self.columns if column.name in CORE] if rng.random() < 0.4 else None
        text = None if condition is None else condition.text

        def makes(pair: Pair) -> Row:
            row = pair[1]
            assert row is not None
            if some is None:
                return row
            defaults = {column.key: column.default for column in self.columns}
            return {TOKEN: row[TOKEN], **defaults, **{column.key: row[column.key] for column in some}}

        def add(merge: Any) -> Any:
            if some is None:
                return merge.when_not_matched_insert_all(text)
            return merge.when_not_matched_insert({column.name: f"s.{column.name}" for column in some}, text)

        return Clause(
            add=add,
            tests=lambda pair: condition is None or (pair[1] is not None and condition.holds(pair[1])),
            makes=makes,
        )

    def _by_source(self, rng: random.Random) -> Clause:
        condition = self._condition(rng, "t.")
        assignments: list[Assignment] = draw_assignments(rng, self.columns, CORE, "t.")
        update = len(assignments) > 0 and rng.random() < 0.5
        texts = {each.name: each.text for each in assignments}

        def makes(pair: Pair) -> Row | None:
            row = pair[0]
            assert row is not None
            return _changed(row, {each.key: each.of(row) for each in assignments}) if update else None

        def add(merge: Any) -> Any:
            if update:
                return merge.when_not_matched_by_source_update(texts, condition.text)
            return merge.when_not_matched_by_source_delete(condition.text)

        return Clause(add=add, tests=lambda pair: pair[0] is not None and condition.holds(pair[0]), makes=makes)


def _update_all(model: EvolvingRows) -> Clause:
    def makes(pair: Pair) -> Row:
        row, source = pair
        assert row is not None
        assert source is not None
        return _changed(row, {column.key: value_in(source, column) for column in model.columns})

    return Clause(add=lambda merge: merge.when_matched_update_all(), tests=lambda pair: True, makes=makes)


def _changed(row: Row, values: Row) -> Row:
    return {key: value for key, value in (row | values).items() if key != CHANGED}
