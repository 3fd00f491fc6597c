"""The physical plans of Spark's queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def file_scans(frame: Any) -> list[Any]:
    """The file scans of a DataFrame that has run."""
    return [node for node in plan_nodes(frame) if node.getClass().getSimpleName() == "FileSourceScanExec"]


def plan_nodes(frame: Any) -> Iterator[Any]:
    """The nodes of the plan of a DataFrame that has run, through the stages of adaptive execution."""
    return nodes_below(frame._jdf.queryExecution().executedPlan())


def nodes_below(plan: Any) -> Iterator[Any]:
    """A node of a physical plan, and the nodes below it."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from nodes_below(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from nodes_below(plan.plan())
    else:
        yield plan
        children = plan.children()
        for place in range(children.size()):
            yield from nodes_below(children.apply(place))
