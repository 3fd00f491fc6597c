"""The calls of streams that read and write tables."""

from __future__ import annotations

from typing import Literal

import msgspec


class WriteBatch(msgspec.Struct, frozen=True, kw_only=True, tag_field="call", tag="write batch"):
    """A batch of a stream; the call passes the rows as a DataFrame."""

    handle: str
    query: str
    batch: int
    mode: Literal["append", "overwrite all"]
    options: dict[str, str]


class StreamCall(msgspec.Struct, frozen=True, kw_only=True, tag_field="call"):
    """A call of a stream that reads a table."""

    handle: str
    options: dict[str, str]


class NewestSnapshot(StreamCall, frozen=True, kw_only=True, tag="newest snapshot"):
    """The id of the newest snapshot, as text; null if the table is empty."""


class LatestOffset(StreamCall, frozen=True, kw_only=True, tag="latest offset"):
    """The end of the batch that starts at an offset, not after the snapshot ``until``; null while the table is empty.

    Offsets are JSON that Python writes and reads; that of a stream before its first batch is ``{}``.
    """

    start: str
    until: str | None
    is_unlimited: bool


class PlanBatch(StreamCall, frozen=True, kw_only=True, tag="plan batch"):
    """The rows between two offsets; the call passes the session, and the answer is a Dataset."""

    start: str
    end: str
