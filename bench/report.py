"""Results as tables: the same table on the screen and in ``results/README.md``, which shows plots as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from rich import box
from rich.table import Table as RichTable

from plot import Chart

FACTS = {
    "date": "date",
    "cores": "cores",
    "memory_gb": "memory (GB)",
    "system": "system",
    "load_before": "load average at the start",
    "python": "Python",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table of texts, with what one must know to read it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def as_rich(table: Table) -> RichTable:
    grid = RichTable(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    grid.caption, grid.caption_justify, grid.min_width = table.note, "left", 100
    for number, column in enumerate(table.columns):
        grid.add_column(column, justify="left" if number == 0 else "right")
    for row in table.rows:
        grid.add_row(*row)
    return grid


def as_markdown(table: Table) -> str:
    lines = [
        f"### {table.title}",
        "",
        _line(table.columns),
        _line(["---"] + ["---:"] * (len(table.columns) - 1)),
        *(_line(row) for row in table.rows),
    ]
    return "\n".join([*lines, "", table.note] if table.note != "" else lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"


def page(results: Mapping[str, Mapping[str, Any]], benches: Mapping[str, Any]) -> str:
    """The README of the results, from the JSON files alone."""
    parts = [
        "# Results of the last run",
        "`make bench` writes this page from the JSON files in this folder, which contain the samples. Figures of"
        " different machines or runs are not comparable; ratios within one table are. A figure is the median; the"
        " brackets contain the minimum and the maximum. The title or note of a table gives the number of runs.",
    ]
    for name, result in results.items():
        parts.append(f"## {benches[name].TITLE}")
        parts.append(_machine(result["machine"]))
        parts.extend(answers(benches[name], result))
        parts.extend(as_markdown(table) for table in benches[name].tables(result))
        parts.extend(f"![{chart.title}]({chart.name}.svg)" for chart in charts(benches[name], result))
    return "\n\n".join(parts) + "\n"


QUESTIONS_INTRODUCTION = """# Open questions of the version 4 proposal

The proposal asks for measurements, or leaves a choice open. Each section has the question, the answer and the bench
that measured it. `bench/run.py` writes this page: answers are built from the figures of the last run, so they change
with them. Figures of different sections come from different runs. All tables, with their conditions, are in the
[results](../bench/results/README.md). Where a section says so, a way that icefloe does not write is simulated in the
bench."""


def questions_page(results: Mapping[str, Mapping[str, Any]], benches: Mapping[str, Any]) -> str:
    """The page of all questions with their answers, from the JSON files alone; it names those that never ran."""
    parts = [QUESTIONS_INTRODUCTION]
    for name, bench in benches.items():
        if not hasattr(bench, "answer"):
            continue
        parts += [f"## {bench.TITLE}", _wrapped(f"**{bench.QUESTION}**")]
        if name in results:
            machine = results[name]["machine"]
            measured = f"Measured by `bench/run.py {name}` on {machine['date']} with {machine['cores']} cores"
            parts.append(_wrapped(bench.answer(results[name])))
            parts.append(_wrapped(f"{measured}; the load average at the start was {machine['load_before']}."))
        else:
            parts.append(f"Not measured yet; run `bench/run.py {name}`.")
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def answers(bench: Any, result: Mapping[str, Any]) -> Sequence[str]:
    """The question that a bench answers, and its answer in a paragraph built from the figures; not every bench has one.

    >>> from types import SimpleNamespace
    >>> answers(SimpleNamespace(QUESTION="How many?", answer=lambda found: f"{found['n']} files."), {"n": 3})
    ['**Question:** How many?', '**Answer:** 3 files.']
    """
    if not hasattr(bench, "answer"):
        return []
    return [f"**Question:** {bench.QUESTION}", f"**Answer:** {bench.answer(result)}"]


def charts(bench: Any, result: Mapping[str, Any]) -> Sequence[Chart]:
    """The plots of a bench; not every bench has some."""
    found: Sequence[Chart] = bench.plots(result) if hasattr(bench, "plots") else ()
    return found


def _machine(machine: Mapping[str, Any]) -> str:
    own = ", ".join(f"{label} {machine[key]}" for key, label in FACTS.items() if key in machine)
    packages = ", ".join(f"{key} {value}" for key, value in machine.items() if key not in FACTS)
    return f"Machine: {own}.\nVersions: {packages}."
