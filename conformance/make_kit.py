"""Writes the conformance kit, or compares it with the one in the repository.

    python conformance/make_kit.py            write to a temporary folder, compare, say what differs; exit code 0 or 1
    python conformance/make_kit.py --write    replace conformance/kit

Tables are written by icefloe. The expected content is computed by check_v4.py, which shares no code with it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import check_v4
from editing import Files
from invalid_cases import CASES as INVALID
from invalid_cases import InvalidCase
from valid_cases import CASES as VALID
from valid_cases import ValidCase

KIT = Path(__file__).parent / "kit"
PAGE = Path(__file__).parents[1] / "docs" / "conformance.md"
EXPECTED, CASE, TABLE = "expected.json", "case.json", "table"


def write_kit(folder: Path) -> None:
    """Write all cases."""
    for case in VALID:
        write_valid(case, folder / "valid" / case.name)
    for fault in INVALID:
        write_invalid(fault, folder)


def write_files(files: dict[str, bytes], folder: Path) -> None:
    """Write files by their places."""
    for place, data in files.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_valid(case: ValidCase, folder: Path) -> None:
    """Write a table and what it contains; the checker must find what the case says, and nothing else."""
    write_files(dict(case.build(case.name)), folder / TABLE)
    findings, table = check_v4.check(folder / TABLE, check_rows=True)
    rules = sorted({finding.rule for finding in findings})
    if rules != sorted(case.findings) or table is None:
        raise SystemExit("\n".join([f"{case.name}: expected findings {list(case.findings)}", *map(str, findings)]))
    document = {"case": case.name, "section": case.section, "text": case.text, "findings": rules}
    document |= check_v4.Contents(table).expected()
    (folder / EXPECTED).write_text(readable(document) + "\n", encoding="utf-8")


def write_invalid(case: InvalidCase, kit: Path) -> None:
    """Write the files that differ from the valid case; the checker must name the rule of the case."""
    base, folder = kit / "valid" / case.base / TABLE, kit / "invalid" / case.name
    files = Files(read_files(base))
    case.edit(files)
    write_files(files.changed, folder / TABLE)
    level, statement = check_v4.RULES[case.rule]
    document = {"case": case.name, "base": case.base, "rule": case.rule, "level": level, "statement": statement}
    document |= {"text": case.text, "removed-files": files.removed}  # type: ignore[dict-item]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CASE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        unfold(kit, case.name, Path(place) / "t")
        findings, _ = check_v4.check(Path(place) / "t", check_rows=True)
    if case.rule not in {finding.rule for finding in findings}:
        raise SystemExit("\n".join([f"{case.name}: {case.rule} is not among the findings", *map(str, findings)]))


def read_files(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their places."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def unfold(kit: Path, name: str, folder: Path) -> dict[str, Any]:
    """Make the whole table of an invalid case: its valid base, with the files of the case in their places."""
    source = kit / "invalid" / name
    document: dict[str, Any] = json.loads((source / CASE).read_text(encoding="utf-8"))
    write_files(read_files(kit / "valid" / document["base"] / TABLE), folder)
    write_files(read_files(source / TABLE), folder)
    for place in document["removed-files"]:
        (folder / place).unlink()
    return document


def readable(document: Any, depth: int = 0) -> str:
    """JSON with a line for each file, so that differences can be read."""
    if isinstance(document, dict) and depth < 3:
        indent = " " * (depth + 1)
        inner = [f"{indent}{json.dumps(key)}: {readable(value, depth + 1)}" for key, value in document.items()]
        return "{\n" + ",\n".join(inner) + "\n" + " " * depth + "}"
    if isinstance(document, list) and depth < 4 and any(isinstance(each, dict) for each in document):
        indent = " " * (depth + 1)
        return "[\n" + ",\n".join(indent + readable(each, depth + 1) for each in document) + "\n" + " " * depth + "]"
    return json.dumps(document)


# -- the page


def page_lists() -> dict[str, list[str]]:
    """The tables of rules and cases of the page."""
    rules = [f"| `{name}` | {level} | {statement} |" for name, (level, statement) in check_v4.RULES.items()]
    valid = [f"| `{case.name}` | {case.section} | {case.text} |" for case in sorted(VALID, key=lambda c: c.name)]
    invalid = [
        f"| `{case.name}` | `{case.rule}` | {check_v4.RULES[case.rule][0]} | {case.text} |"
        for case in sorted(INVALID, key=lambda c: c.name)
    ]
    return {
        "rules": ["| rule | level | statement |", "|---|---|---|", *rules],
        "valid": ["| case | section of the proposal | content |", "|---|---|---|", *valid],
        "invalid": ["| case | rule | level | fault |", "|---|---|---|---|", *invalid],
    }


def filled(page: str) -> str:
    """The page with its tables of rules and cases."""
    for name, lines in page_lists().items():
        start = f"<!-- {name} -->\n"
        before, _, rest = page.partition(start)
        page = before + start + "\n".join(["", *lines, ""]) + "\n<!-- end -->" + rest.partition("<!-- end -->")[2]
    return page


# -- comparing


def differences(old: Path, new: Path) -> Iterator[str]:
    """What differs between two kits, by content: Parquet files by schema, keys and rows, others by bytes."""
    names = [sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) for folder in (old, new)]
    for name in sorted({*names[0], *names[1]}):
        if name not in names[1]:
            yield f"{name}: is not written any more"
        elif name not in names[0]:
            yield f"{name}: is new"
        elif (old / name).read_bytes() != (new / name).read_bytes() and not _same_parquet(old / name, new / name):
            yield f"{name}: differs"


def _same_parquet(old: Path, new: Path) -> bool:
    if old.suffix != ".parquet":
        return False
    try:
        files = [pq.ParquetFile(path) for path in (old, new)]
        contents = [(file.schema, file.metadata.metadata, file.read()) for file in files]
    except Exception:  # some invalid cases are no Parquet files
        return False
    return bool(contents[0][0].equals(contents[1][0]) and repr(contents[0][1:]) == repr(contents[1][1:]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description="Write the conformance kit and compare it with the one in the repository."
    )
    parser.add_argument("--write", action="store_true", help="replace the kit in the repository")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        new = Path(place) / "kit"
        write_kit(new)
        page = PAGE.read_text(encoding="utf-8")
        found = [*differences(KIT, new), *([] if filled(page) == page else [f"{PAGE.name}: differs"])]
        size = sum(path.stat().st_size for path in new.rglob("*") if path.is_file())
        if options.write:
            shutil.rmtree(KIT, ignore_errors=True)
            shutil.copytree(new, KIT)
            PAGE.write_text(filled(page), encoding="utf-8")
        for line in found:
            print(line)
        cases = {kind: len(list((new / kind).glob("*"))) for kind in ("valid", "invalid")}
        print(f"{cases['valid']} valid and {cases['invalid']} invalid cases, {size:,} bytes, {len(found)} differences")
        return 0 if options.write or len(found) == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
