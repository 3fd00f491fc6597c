"""Which rows of a batch are kept: not deleted by position, and matched by a filter."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import acero
from pyroaring import BitMap64

Mask: TypeAlias = npt.NDArray[np.bool_]


class DeletedRows:
    """The deleted positions of one file, ready to be asked by range."""

    def __init__(self, deleted: BitMap64 | None) -> None:
        self._positions = np.zeros(0, np.uint64) if deleted is None else np.asarray(deleted.to_array())

    def kept(self, start: int, rows: int) -> Mask | None:
        """Which of the rows from ``start`` on are not deleted; none if that is all of them."""
        first, last = np.searchsorted(self._positions, np.array([start, start + rows], np.uint64))
        if first == last:
            return None
        kept = np.ones(rows, np.bool_)
        kept[self._positions[first:last].astype(np.int64) - start] = False
        return kept


def matching(batch: pa.RecordBatch, expression: Any) -> Mask:
    """Which rows a filter is true for; a filter that is null does not match."""
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch])))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["matches"]))
    answer = acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)
    return np.asarray(answer["matches"].combine_chunks().fill_null(False))
