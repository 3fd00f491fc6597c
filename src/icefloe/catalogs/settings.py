"""The configuration of catalogs: from the environment, ``icefloe.toml``, and that of pyiceberg as a fallback.

Environment: ``ICEFLOE_CATALOG__<NAME>__<KEY>``, the name in capitals with ``_`` for what is not a letter or digit; in a
key ``__`` means a dot and ``_`` a dash, so ``..._S3__ACCESS_KEY_ID`` is ``s3.access-key-id``. File:
``icefloe.toml`` in the current folder or else in the home folder, with a table ``[catalog.<name>]``. If neither
configures a catalog, ``PYICEBERG_CATALOG__...`` and ``.pyiceberg.yaml`` are read in the same way. In all of them
``default-catalog`` names the default catalog.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icefloe.errors import InputError
from icefloe.lazy import load_optional

FILE_NAME = "icefloe.toml"
OTHER_FILE_NAME = ".pyiceberg.yaml"
KEYS = ("type", "uri", "warehouse")
DEFAULT_CATALOG = "default-catalog"
DEFAULT_NAME = "default"

_OURS, _OTHERS = "ICEFLOE", "PYICEBERG"


def configured(name: str) -> dict[str, str]:
    """All settings of a catalog; empty if it is not configured."""
    own = {**_of_catalog(_own_file(), name), **_from_environment(_OURS, name)}
    if len(own) > 0:
        return own
    return {**_of_catalog(_other_file(), name), **_from_environment(_OTHERS, name)}


def default_name() -> str:
    """The catalog that is meant when none is named."""
    for prefix, file in ((_OURS, _own_file), (_OTHERS, _other_file)):
        named = os.environ.get(f"{prefix}_DEFAULT_CATALOG")
        if named is not None:
            return named
        path, document = file()
        named = document.get(DEFAULT_CATALOG)
        if named is not None:
            if not isinstance(named, str):
                raise InputError(f"{path}: {DEFAULT_CATALOG} = {named!r} is not a name", path=str(path))
            return named
    return DEFAULT_NAME


def configured_names() -> list[str]:
    """The names of all catalogs that are configured; the environment has them in capitals, so those are lowered."""
    names = {name for _, document in (_own_file(), _other_file()) for name in _catalogs(document)}
    spelt = {_in_capitals(name) for name in names}
    pattern = re.compile(f"(?:{_OURS}|{_OTHERS})_CATALOG__(.+?)__")
    found = {match[1] for match in map(pattern.match, os.environ) if match is not None}
    return sorted(names | {name.lower() for name in found - spelt})


def _in_capitals(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def _from_environment(prefix: str, name: str) -> dict[str, str]:
    start = f"{prefix}_CATALOG__{_in_capitals(name)}__"
    return {_key(text[len(start) :]): os.environ[text] for text in sorted(os.environ) if text.startswith(start)}


def _key(text: str) -> str:
    return text.lower().replace("__", ".").replace("_", "-")


_Document = tuple[Path, Mapping[str, Any]]


def _own_file() -> _Document:
    for path in (Path.cwd() / FILE_NAME, Path.home() / FILE_NAME):
        if path.is_file():
            try:
                return path, tomllib.loads(path.read_text("utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise InputError(f"{path} is not valid TOML: {error}", path=str(path)) from error
    return Path(FILE_NAME), {}


def _other_file() -> _Document:
    """The file of pyiceberg, from where it would take it."""
    home = os.environ.get("PYICEBERG_HOME")
    folders = (*(() if home is None else (Path(home),)), Path.home(), Path.cwd())
    path = next((folder / OTHER_FILE_NAME for folder in folders if (folder / OTHER_FILE_NAME).is_file()), None)
    if path is None:
        return Path(OTHER_FILE_NAME), {}
    document = _yaml(path)
    if not isinstance(document, Mapping):
        raise InputError(f"{path} has no settings by name", path=str(path))
    return path, document


def _yaml(path: Path) -> Any:
    yaml = load_optional("yaml", needed_by=f"{path}, unless {FILE_NAME} configures the catalog,")
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid YAML: {error}", path=str(path)) from error
    return {} if document is None else document


def _catalogs(document: Mapping[str, Any]) -> Mapping[str, Any]:
    catalogs = document.get("catalog", {})
    return catalogs if isinstance(catalogs, Mapping) else {}


def _of_catalog(file: _Document, name: str) -> dict[str, str]:
    path, document = file
    catalogs = document.get("catalog", {})
    section = catalogs.get(name, {}) if isinstance(catalogs, Mapping) else catalogs
    if not isinstance(section, Mapping):
        raise InputError(f"{path}: [catalog.{name}] is not a table", path=str(path))
    options = dict(_flat(section))
    for key, value in options.items():
        problem = _problem(key, value, strict=path.name == FILE_NAME)
        if problem is not None:
            raise InputError(f"{path}: {key} = {value!r} in [catalog.{name}]; {problem}", path=str(path))
    return {key: _text(value) for key, value in options.items()}


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Settings by dotted keys; a table inside a catalog's is a part of the key."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _problem(key: str, value: object, *, strict: bool) -> str | None:
    # In our own file a key without a dot is one of ours, so that a misspelt one is not passed over.
    if strict and key not in KEYS and "." not in key:
        return f"it takes {', '.join(KEYS)} and properties such as s3.endpoint"
    if isinstance(value, str) or (key not in KEYS and isinstance(value, (bool, int, float))):
        return None
    return "write it as text"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
