"""Counts of statistics; those that contradict each other are treated as unknown (spec: Manifests).

Programs have written counts that cannot be true: -1 for an unknown number, or more nulls than values. Which of these
counts is wrong is not known, so none of them is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from icefloe.model.entries import COUNTS, Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of values, nulls and NaN of one column in many files, as Arrow columns; None if none is recorded."""

    values: Any
    nulls: Any
    nans: Any

    @staticmethod
    def of(known: Mapping[Measure, Any]) -> Counts:
        """The counts among statistics, as recorded."""
        return Counts(values=known.get(Measure.VALUES), nulls=known.get(Measure.NULLS), nans=known.get(Measure.NANS))

    @property
    def known(self) -> dict[Measure, Any]:
        """The recorded counts by measure."""
        counts = zip(COUNTS, (self.values, self.nulls, self.nans), strict=True)
        return {measure: column for measure, column in counts if column is not None}

    def consistent(self, rows: Any, *, whole: bool) -> Counts:
        """The counts, null where they contradict each other or the numbers of rows.

        ``whole`` is true if every row has a value or a null, that is, unless a struct around the column may be null.

        >>> import pyarrow as pa
        >>> counts = Counts(values=pa.array([3, -1, 2]), nulls=pa.array([1, 0, 5]), nans=None)
        >>> counts.consistent(pa.array([3, 3, 3]), whole=True).nulls.to_pylist()
        [1, None, None]
        """
        if self._are_plainly_consistent(rows):
            return self
        wrong = self.contradictions(rows, whole=whole)
        if wrong is None or pc.any(wrong).as_py() is not True:
            return self
        kept = [c if c is None else pc.if_else(wrong, None, c) for c in (self.values, self.nulls, self.nans)]
        return Counts(values=kept[0], nulls=kept[1], nans=kept[2])

    def _are_plainly_consistent(self, rows: Any) -> bool:
        """Whether there are as many values as rows, and in no file more nulls and NaN than in any file values.

        Most tables are like this, and it is found with the fewest passes over the columns.
        """
        if self.values is None or rows is None or not self.values.equals(rows):
            return False
        ranges = [pc.min_max(count).as_py() for count in (self.nulls, self.nans) if count is not None]
        known = [found for found in ranges if found["max"] is not None]
        most = sum(found["max"] for found in known)
        fewest = pc.min(self.values).as_py()
        return all(found["min"] >= 0 for found in known) and (fewest is None or max(most, 0) <= fewest)

    def contradictions(self, rows: Any, *, whole: bool) -> Any:
        """Where counts cannot be true together; None if there is nothing to compare."""
        parts = [count for count in (self.nulls, self.nans) if count is not None]
        if self.nulls is not None and self.nans is not None:
            parts.append(pc.add(self.nulls, self.nans))
        tests = [pc.less(count, 0) for count in (self.values, self.nulls, self.nans) if count is not None]
        for total in (total for total in (self.values, rows) if total is not None):
            tests += [pc.greater(part, total) for part in parts]
        if self.values is not None and rows is not None:
            tests.append((pc.not_equal if whole else pc.greater)(self.values, rows))
        wrong = None
        for test in tests:
            test = pc.fill_null(test, False) if test.null_count > 0 else test
            wrong = test if wrong is None else pc.or_(wrong, test)
        return wrong
