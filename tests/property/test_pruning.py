"""Pruning never loses a row and never claims one, for random schemas, rows, statistics and filters.

One case is one filter over one table of random files: what statistics, manifests and residuals say about each
file is compared with the truth about each of its rows. A failure names the seed of its table and the filter.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest
from pruning_cases import Dataset, File, Truth, contradicted, dataset, expression, truth

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Bound, Expr
from icefloe.expr.prune.residual import residuals
from icefloe.expr.prune.stats_eval import Match, evaluate

LARGE = os.environ.get("ICEFLOE_PROFILE") == "property"
CASES = 500_000 if LARGE else 20_000
CHUNKS = 50 if LARGE else 20
FILTERS_PER_TABLE = 10
TABLES_PER_CHUNK = CASES // CHUNKS // FILTERS_PER_TABLE

# Selected with the tests that hypothesis makes: `make property` runs them all in their larger sizes.
pytestmark = pytest.mark.hypothesis


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_row_is_lost_and_none_is_claimed(chunk: int) -> None:
    for table in range(TABLES_PER_CHUNK):
        judge_table(f"{chunk}/{table}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_counts_that_contradict_each_other_say_nothing(chunk: int) -> None:
    """Files whose ``value_counts`` was -1, or less than their null counts, were skipped though they had rows."""
    for table in range(TABLES_PER_CHUNK // 4):
        judge_table(f"contradicted {chunk}/{table}", contradicted)


def judge_table(seed: str, change: Callable[[random.Random, Dataset], Dataset] | None = None) -> None:
    """Fail if pruning by some filter of one random table, changed by ``change`` if there is one, is wrong."""
    rng = random.Random(seed)
    made = dataset(rng) if change is None else change(rng, dataset(rng))
    for number in range(FILTERS_PER_TABLE):
        expr = expression(rng, made.layout, made.rows)
        bound = bind(expr, made.layout.schema)
        problem = judge(made, bound, truth(expr, made.layout))
        if problem is not None:
            pytest.fail(report(seed, number, made, expr, bound, problem), pytrace=False)


def report(seed: str, number: int, made: Dataset, expr: Expr, bound: Bound, problem: str) -> str:
    files = "\n".join(f"  spec {file.spec} {file.values}: {file.rows}" for file in made.files)
    return (
        f"judge_table({seed!r}), filter {number}: {problem}\nfilter: {expr}\nbound: {bound}\n"
        f"schema: {made.layout.schema.fields}\npartitions: {made.layout.fields}\nfiles:\n{files}"
    )


def judge(made: Dataset, bound: Bound, matching: Truth) -> str | None:
    """What is wrong, or None."""
    found = {id(file): [matching(row) is True for row in file.rows] for file in made.files}
    return judge_statistics(made, bound, found) or judge_residuals(made, bound, found)


def judge_statistics(made: Dataset, bound: Bound, found: dict[int, list[bool]]) -> str | None:
    contents = [[file] for file in made.files] + made.manifests
    answers = evaluate(bound, made.table, made.layout.fields).to_pylist()
    for index, (content, answer) in enumerate(zip(contents, answers, strict=True)):
        rows = [each for file in content for each in found[id(file)]]
        if (answer == Match.NONE and any(rows)) or (answer == Match.ALL and not all(rows)):
            return f"statistics say {Match(answer).name} of entry {index}: {made.table.slice(index, 1).to_pylist()}"
    return None


def judge_residuals(made: Dataset, bound: Bound, found: dict[int, list[bool]]) -> str | None:
    layout, files = made.layout, made.files
    distinct, index = residuals(bound, layout.fields, layout.schema, made.table.slice(0, len(files)))
    meanings = [truth(each, layout) for each in distinct]
    for file, position in zip(files, index.to_pylist(), strict=True):
        if wrong(file, meanings[position], found):
            return f"one of the residuals, for {file}, is {distinct[position]}"
    return None


def wrong(file: File, meaning: Truth, found: dict[int, list[bool]]) -> bool:
    return [meaning(row) is True for row in file.rows] != found[id(file)]
