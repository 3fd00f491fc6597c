"""The options of compaction, with the names and defaults of Apache Iceberg's ``rewrite_data_files``.

``max-file-share`` is an option of this library alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from icefloe.errors import InputError
from icefloe.limits import MIB
from icefloe.model.metadata.properties import TARGET_FILE_SIZE
from icefloe.model.metadata.table_metadata import TableMetadata

_MIN_SHARE, _MAX_SHARE = 0.75, 1.8  # of the target size
_NO_LIMIT = 2**63 - 1
_GROUP_SIZE = 100 * 1024 * MIB


class JobOrder(StrEnum):
    """In which order groups are rewritten."""

    NONE = "none"
    BYTES_ASC = "bytes-asc"
    BYTES_DESC = "bytes-desc"
    FILES_ASC = "files-asc"
    FILES_DESC = "files-desc"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """The options of a compaction, checked; sizes are in bytes."""

    target_size: int
    min_size: int
    max_size: int
    min_input_files: int = 5
    delete_file_threshold: int = _NO_LIMIT
    delete_ratio_threshold: float = 0.3
    rewrite_all: bool = False
    max_group_size: int = _GROUP_SIZE
    partial_progress: bool = False
    max_commits: int = 10
    max_concurrent_rewrites: int = 5
    job_order: JobOrder = JobOrder.NONE
    output_spec_id: int
    converts_specs: bool = False  # whether files of other partition specs are rewritten for that reason
    remove_dangling_deletes: bool = True
    max_files: int = _NO_LIMIT
    max_share: float = 1.0  # of a small file in all small files that are rewritten with it
    use_starting_sequence_number: bool = True


NAMES = (
    "target-file-size-bytes",
    "min-file-size-bytes",
    "max-file-size-bytes",
    "min-input-files",
    "delete-file-threshold",
    "delete-ratio-threshold",
    "rewrite-all",
    "max-file-group-size-bytes",
    "partial-progress.enabled",
    "partial-progress.max-commits",
    "max-concurrent-file-group-rewrites",
    "rewrite-job-order",
    "output-spec-id",
    "remove-dangling-deletes",
    "max-files-to-rewrite",
    "max-file-share",
    "use-starting-sequence-number",
)


def compact_options(options: Mapping[str, object] | None, metadata: TableMetadata) -> CompactOptions:
    """The options by name, with defaults; InputError for unknown names and for values that make no sense."""
    texts = {name: _text(value) for name, value in ({} if options is None else options).items()}
    for name in texts:
        if name not in NAMES:
            raise InputError(f"compact: there is no option {name!r}{_nearest(name)}", option=name)
    given = _Given(texts)
    target = given.number("target-file-size-bytes", TARGET_FILE_SIZE.of(metadata.properties))
    spec_id = given.number("output-spec-id", metadata.default_spec_id, least=0)
    chosen = CompactOptions(
        target_size=target,
        min_size=given.number("min-file-size-bytes", int(target * _MIN_SHARE), least=0),
        max_size=given.number("max-file-size-bytes", int(target * _MAX_SHARE)),
        min_input_files=given.number("min-input-files", 5),
        delete_file_threshold=given.number("delete-file-threshold", _NO_LIMIT),
        delete_ratio_threshold=given.ratio("delete-ratio-threshold", 0.3),
        rewrite_all=given.flag("rewrite-all", default=False),
        max_group_size=given.number("max-file-group-size-bytes", _GROUP_SIZE),
        partial_progress=given.flag("partial-progress.enabled", default=False),
        max_commits=given.number("partial-progress.max-commits", 10),
        max_concurrent_rewrites=given.number("max-concurrent-file-group-rewrites", 5),
        job_order=given.order("rewrite-job-order"),
        output_spec_id=spec_id,
        converts_specs="output-spec-id" in texts,
        remove_dangling_deletes=given.flag("remove-dangling-deletes", default=True),
        max_files=given.number("max-files-to-rewrite", _NO_LIMIT),
        max_share=given.ratio("max-file-share", 1.0),
        use_starting_sequence_number=given.flag("use-starting-sequence-number", default=True),
    )
    _check(chosen, metadata)
    return chosen


def _check(chosen: CompactOptions, metadata: TableMetadata) -> None:
    if not chosen.min_size < chosen.target_size < chosen.max_size:
        raise InputError(
            f"compact: min-file-size-bytes ({chosen.min_size}) must be less than target-file-size-bytes"
            f" ({chosen.target_size}), and that less than max-file-size-bytes ({chosen.max_size})"
        )
    known = [spec.spec_id for spec in metadata.specs]
    if chosen.output_spec_id not in known:
        raise InputError(
            f"compact: option output-spec-id: the table has no partition spec {chosen.output_spec_id}, only"
            f" {', '.join(map(str, known))}",
            option="output-spec-id",
        )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.0)
    return f"; the nearest name is {close[0]!r}"


@dataclass(frozen=True, slots=True)
class _Given:
    """The texts of options, converted one by one."""

    texts: Mapping[str, str]

    def number(self, name: str, default: int, *, least: int = 1) -> int:
        text = self.texts.get(name)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < least:
            raise self._wrong(name, f"a whole number of at least {least}", text)
        return int(text)

    def ratio(self, name: str, default: float) -> float:
        text = self.texts.get(name)
        if text is None:
            return default
        try:
            ratio = float(text)
        except ValueError:
            ratio = 0.0
        if not 0 < ratio <= 1:
            raise self._wrong(name, "a number above 0 and up to 1", text)
        return ratio

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.texts.get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise self._wrong(name, "true or false", text)
        return text.lower() == "true"

    def order(self, name: str) -> JobOrder:
        text = self.texts.get(name, str(JobOrder.NONE)).lower()
        known = {str(order): order for order in JobOrder}
        if text not in known:
            raise self._wrong(name, " or ".join(known), text)
        return known[text]

    def _wrong(self, name: str, expected: str, text: str) -> InputError:
        return InputError(f"compact: option {name}: expected {expected}, got {text!r}", option=name)
