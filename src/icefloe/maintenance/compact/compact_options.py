"""The options of compaction, with the names and defaults of Apache Iceberg's ``rewrite_data_files``.

``max-file-share`` is an option of this library alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from typing import Any

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


def _option(name: str, default: Any = MISSING, *, least: int = 1) -> Any:
    """A field that has the value of an option; numbers are at least ``least``."""
    return field(default=default, metadata={"option": name, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """The options of a compaction, checked; sizes are in bytes."""

    target_size: int = _option("target-file-size-bytes")
    min_size: int = _option("min-file-size-bytes", least=0)
    max_size: int = _option("max-file-size-bytes")
    min_input_files: int = _option("min-input-files", 5)
    delete_file_threshold: int = _option("delete-file-threshold", _NO_LIMIT)
    delete_ratio_threshold: float = _option("delete-ratio-threshold", 0.3)
    rewrite_all: bool = _option("rewrite-all", False)
    max_group_size: int = _option("max-file-group-size-bytes", _GROUP_SIZE)
    partial_progress: bool = _option("partial-progress.enabled", False)
    max_commits: int = _option("partial-progress.max-commits", 10)
    max_concurrent_rewrites: int = _option("max-concurrent-file-group-rewrites", 5)
    job_order: JobOrder = _option("rewrite-job-order", JobOrder.NONE)  # noqa: RUF009  # it makes a field
    output_spec_id: int = _option("output-spec-id", least=0)
    remove_dangling_deletes: bool = _option("remove-dangling-deletes", True)
    max_files: int = _option("max-files-to-rewrite", _NO_LIMIT)
    max_share: float = _option("max-file-share", 1.0)  # of a small file in all that are rewritten with it
    use_starting_sequence_number: bool = _option("use-starting-sequence-number", True)
    converts_specs: bool = False  # whether files of other partition specs are rewritten for that reason


_OPTIONS = {field.metadata["option"]: field for field in fields(CompactOptions) if "option" in field.metadata}


def compact_options(options: Mapping[str, object] | None, metadata: TableMetadata) -> CompactOptions:
    """The options by name, with defaults; InputError for unknown names and for values that make no sense."""
    texts = {name: _text(value) for name, value in ({} if options is None else options).items()}
    for name in texts:
        if name not in _OPTIONS:
            raise InputError(f"compact: there is no option {name!r}{_nearest(name)}", option=name)
    given = {each.name: _value(each, texts[name]) for name, each in _OPTIONS.items() if name in texts}
    target = given.get("target_size", TARGET_FILE_SIZE.of(metadata.properties))
    defaults = {
        "target_size": target,
        "min_size": int(target * _MIN_SHARE),
        "max_size": int(target * _MAX_SHARE),
        "output_spec_id": metadata.default_spec_id,
    }
    chosen = CompactOptions(**{**defaults, **given}, converts_specs="output_spec_id" in given)
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
    close = difflib.get_close_matches(name, _OPTIONS, n=1, cutoff=0.0)
    return f"; the nearest name is {close[0]!r}"


def _value(option: Field[Any], text: str) -> Any:
    """The value of an option; InputError if the text is not one of its type."""
    least = option.metadata["least"]
    match option.type:
        case "int":
            expected = f"a whole number of at least {least}"
            value: Any = int(text) if text.isdecimal() and int(text) >= least else None
        case "float":
            expected = "a number above 0 and up to 1"
            value = _ratio(text)
        case "bool":
            expected = "true or false"
            value = {"true": True, "false": False}.get(text.lower())
        case _:
            known = {str(order): order for order in JobOrder}
            expected, value = " or ".join(known), known.get(text.lower())
    if value is None:
        name = option.metadata["option"]
        raise InputError(f"compact: option {name}: expected {expected}, got {text!r}", option=name)
    return value


def _ratio(text: str) -> float | None:
    try:
        ratio = float(text)
    except ValueError:
        return None
    return ratio if 0 < ratio <= 1 else None
