"""Run the benches, print what they found and keep it: ``run.py [append] [spark] [--option value]``.

Each bench writes ``results/<name>.json`` with every sample; ``results/README.md`` and the plots that it shows are made
from those files, so it also shows benches that did not run this time. So is ``docs/version-4-questions.md``. Nothing
here passes or fails: timings are reported, never asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console

import append
import bitmaps
import checksums
import commits
import compaction
import decoders
import expiry
import huge
import lookups
import maintained_commits
import manifests
import metadata_load
import planning
import query_plans
import rows
import spark_pipeline
import spark_planning
import spark_sql
import stats_eval
import thresholds
import tpcds
import transforms
import writes
from machine import facts
from plot import svg
from questions import (
    affinity,
    billion,
    change_detection,
    colocated,
    leaf_rewrites,
    object_store,
    random_keys,
    retained,
    wide,
)
from report import answers, as_rich, charts, page, questions_page

RESULTS = Path(__file__).resolve().parent / "results"
QUESTIONS = RESULTS.parents[1] / "docs" / "version-4-questions.md"
BENCHES = {
    "append": append,
    "spark": spark_pipeline,
    "spark_sql": spark_sql,
    "spark_planning": spark_planning,
    "query_plans": query_plans,
    "transforms": transforms,
    "stats_eval": stats_eval,
    "metadata_load": metadata_load,
    "planning": planning,
    "manifests": manifests,
    "decoders": decoders,
    "commits": commits,
    "maintained_commits": maintained_commits,
    "compaction": compaction,
    "expiry": expiry,
    "thresholds": thresholds,
    "tpcds": tpcds,
    "bitmaps": bitmaps,
    "huge": huge,
    "rows": rows,
    "checksums": checksums,
    "lookups": lookups,
    "writes": writes,
    "affinity": affinity,
    "leaf_rewrites": leaf_rewrites,
    "change_detection": change_detection,
    "colocated": colocated,
    "retained": retained,
    "wide": wide,
    "random_keys": random_keys,
    "billion": billion,
    "object_store": object_store,
}


def main(arguments: list[str]) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    unknown = [name for name in given.bench if name not in BENCHES]
    if len(unknown) > 0:
        parser.error(f"no bench {unknown[0]!r}; there are: {', '.join(BENCHES)}")
    screen = Console(width=120, highlight=False)
    for name in () if given.report else given.bench or BENCHES:
        screen.rule(f"[bold]{name}[/bold]")
        _run(name, given, screen)
    if not given.dry_run:
        _write_page()
        screen.print(f"written: {RESULTS.relative_to(RESULTS.parents[1])}/README.md", style="dim")
    return 0


def _run(name: str, given: argparse.Namespace, screen: Console) -> None:
    bench = BENCHES[name]
    sizes = bench.Sizes(**{each.name: getattr(given, f"{name}_{each.name}") for each in fields(bench.Sizes)})
    result = {"bench": name, "machine": facts(), **bench.run(sizes, lambda text: screen.print(text, style="dim"))}
    earlier = _results().get(name)
    if earlier is not None and hasattr(bench, "with_earlier"):
        result = bench.with_earlier(result, earlier)
    if not given.dry_run:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for table in bench.tables(result):
        screen.print(as_rich(table))
    for text in answers(bench, result):
        screen.print(text, markup=False)


def _write_page() -> None:
    """The page of all results, its plots, and the page of the questions about version 4, from the JSON files alone."""
    results = _results()
    for name, result in results.items():
        for chart in charts(BENCHES[name], result):
            (RESULTS / f"{chart.name}.svg").write_text(svg(chart), encoding="utf-8")
    (RESULTS / "README.md").write_text(page(results, BENCHES), encoding="utf-8")
    QUESTIONS.write_text(questions_page(results, BENCHES), encoding="utf-8")


def _results() -> dict[str, dict[str, Any]]:
    """The last result of every bench that ever ran."""
    found = {name: RESULTS / f"{name}.json" for name in BENCHES}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in found.items() if path.exists()}


def _parser() -> argparse.ArgumentParser:
    """Every size is an option, ``--append-last 100``, and a variable, ``ICEFLOE_BENCH_APPEND_LAST=100``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", nargs="*", help=f"which to run: {', '.join(BENCHES)}; all without any")
    parser.add_argument("--dry-run", action="store_true", help="print only, keep the results of the last run")
    parser.add_argument("--report", action="store_true", help="run nothing, write the page of the last results again")
    for name, bench in BENCHES.items():
        group = parser.add_argument_group(name)
        for each in fields(bench.Sizes):
            variable = f"ICEFLOE_BENCH_{name}_{each.name}".upper()
            default = int(os.environ.get(variable, str(each.default)))
            option = f"--{name}-{each.name}".replace("_", "-")
            group.add_argument(
                option, dest=f"{name}_{each.name}", type=int, default=default, help=f"default {each.default}"
            )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
