"""The physical plans of Spark's queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def file_scans(frame: Any) -> list[Any]:
    """The file scans of a DataFrame that has run, through the stages of adaptive execution."""
    return list(_scans(frame._jdf.queryExecution().executedPlan()))


def _scans(plan: Any) -> Iterator[Any]:
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif kind.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    elif kind == "FileSourceScanExec":
        yield plan
    else:
        children = plan.children()
        for place in range(children.size()):
            yield from _scans(children.apply(place))
