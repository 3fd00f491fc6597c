"""Rows added to a table (spec: Snapshots)."""

from __future__ import annotations

from icefloe.commit.operations.append import Append
from icefloe.commit.operations.cherry_pick import STAGED_WAP_ID
from icefloe.engines.engine import Engine
from icefloe.model.metadata.snapshots import Operation
from icefloe.model.text.text_checks import check_text
from icefloe.rows.prepared import Prepared
from icefloe.rows.target import Target


def append(target: Target, rows: object, engine: Engine, *, wap_id: str | None = None) -> Prepared:
    """Add rows; an empty input makes no snapshot."""
    if wap_id is not None:
        check_text(wap_id, "append: wap_id")
    added = engine.write(target.io, rows, target.metadata)
    if added.num_rows == 0:
        return Prepared(operation=Operation.APPEND)
    staged = {} if wap_id is None else {STAGED_WAP_ID: wap_id}
    update = Append(added=added, branch=target.branch, staged=wap_id is not None, properties=staged)
    return Prepared(operation=Operation.APPEND, update=update)
