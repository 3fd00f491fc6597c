"""Branches and tags that CALL creates and replaces, with the options of CREATE BRANCH and CREATE TAG in Apache Iceberg.

``retain`` is the age at which the branch or tag itself expires. ``min_snapshots_to_keep`` and ``max_snapshot_age`` say
which snapshots of a branch are kept. Ages are texts such as ``30 days``: Spark does not convert the intervals of CALL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from icefloe.commit.operations.ref_updates import CURRENT, SetRef
from icefloe.errors import InputError
from icefloe.model.metadata.snapshots import Ref
from icefloe.table.table import Table

RefKind = Literal["branch", "tag"]

_AGE = re.compile(r"\s*(\d{1,9})\s*(minute|hour|day)s?\s*", re.IGNORECASE)
_MILLISECONDS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


def set_ref(table: Table, kind: RefKind, arguments: Mapping[str, Any]) -> tuple[str, int]:
    """Create a branch or tag, or replace it; its name and its snapshot. A replaced one keeps the retention it has."""
    name, known = arguments[kind], table.refs.get(arguments[kind])
    keeps, replaces = _flag(arguments, "if_not_exists"), _flag(arguments, "or_replace")
    if keeps and replaces:
        raise InputError("give if_not_exists or or_replace, not both", ref=name)
    if keeps and known is not None and known.type == kind:
        return name, known.snapshot_id
    given = arguments.get("snapshot_id")
    former = known if replaces and known is not None else Ref(snapshot_id=CURRENT)
    ref = replace(former, type=kind, snapshot_id=CURRENT if given is None else int(given), **retention(arguments))
    table._commit(SetRef(ref_name=name, ref=ref, fresh=not replaces))
    return name, table.refresh().refs[name].snapshot_id


def retention(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The retention settings of a ref that arguments state.

    >>> retention({"retain": "30 days", "min_snapshots_to_keep": "3"})
    {'max_ref_age_ms': 2592000000, 'min_snapshots_to_keep': 3}
    """
    settings: dict[str, Any] = {}
    if "retain" in arguments:
        settings["max_ref_age_ms"] = _age_ms("retain", arguments["retain"])
    if "min_snapshots_to_keep" in arguments:
        settings["min_snapshots_to_keep"] = int(arguments["min_snapshots_to_keep"])
    if "max_snapshot_age" in arguments:
        settings["max_snapshot_age_ms"] = _age_ms("max_snapshot_age", arguments["max_snapshot_age"])
    return settings


def _age_ms(name: str, text: str) -> int:
    found = _AGE.fullmatch(text)
    if found is None:
        raise InputError(f"{name} {text!r}: give an age in days, hours or minutes, such as '30 days'", value=text)
    return int(found[1]) * _MILLISECONDS[found[2].lower()]


def _flag(arguments: Mapping[str, Any], name: str) -> bool:
    return bool(arguments.get(name, "false") == "true")
