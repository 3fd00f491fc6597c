"""Finding a catalog by name: arguments, environment, file, default."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from icefloe.catalogs.catalog import Catalog
from icefloe.catalogs.config import catalog_settings, open_settings
from icefloe.catalogs.files import FilesCatalog
from icefloe.catalogs.memory import MemoryCatalog
from icefloe.catalogs.settings import default_name
from icefloe.catalogs.sql import SqlCatalog
from icefloe.errors import InputError, UnsupportedError

pytestmark = pytest.mark.usefixtures("home")


def open_catalog(name: str | None = None, **arguments: Any) -> Catalog:
    return open_settings(catalog_settings(name, **arguments))


def configure(folder: Path, name: str, key: str) -> None:
    (folder / "icefloe.toml").write_text(
        f'[catalog.{name}]\nuri = "sqlite:///{folder}/{key}.db"\nwarehouse = "{folder}/{key}"\n', "utf-8"
    )


def test_a_catalog_configured_nowhere_lives_in_the_home_folder(home: Path) -> None:
    catalog = open_catalog()
    assert (catalog.name, catalog.warehouse) == ("default", f"file://{home}/.icefloe/warehouse")
    assert (home / ".icefloe" / "catalog.db").is_file()


def test_arguments_win_over_the_file(home: Path, tmp_path: Path) -> None:
    configure(home, "demo", "file")
    catalog = open_catalog("demo", uri=f"sqlite:///{tmp_path}/arg.db", warehouse="wh")
    assert catalog.warehouse == f"file://{tmp_path}/here/wh"
    assert (tmp_path / "arg.db").is_file()


def test_a_uri_alone_takes_no_warehouse_from_elsewhere(home: Path, tmp_path: Path) -> None:
    configure(home, "demo", "file")
    assert open_catalog("demo", uri=f"sqlite:///{tmp_path}/arg.db").warehouse is None


def test_a_warehouse_alone_goes_with_the_configured_uri(home: Path) -> None:
    configure(home, "demo", "file")
    assert open_catalog("demo", warehouse="file:///other").warehouse == "file:///other"
    assert (home / "file.db").is_file()


def test_the_environment_wins_over_the_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(home, "my-cat", "file")
    monkeypatch.setenv("ICEFLOE_CATALOG__MY_CAT__URI", f"sqlite:///{tmp_path}/env.db")
    catalog = open_catalog("my-cat")
    assert catalog.warehouse == f"file://{home}/file"
    assert (tmp_path / "env.db").is_file()
    monkeypatch.setenv("ICEFLOE_CATALOG__MY_CAT__WAREHOUSE", "file:///env/wh")
    assert open_catalog("my-cat").warehouse == "file:///env/wh"


def test_the_file_of_the_current_folder_wins_over_that_of_the_home_folder(home: Path, tmp_path: Path) -> None:
    configure(home, "demo", "home")
    assert open_catalog("demo").warehouse == f"file://{home}/home"
    configure(tmp_path / "here", "demo", "local")
    assert open_catalog("demo").warehouse == f"file://{tmp_path}/here/local"


def test_a_warehouse_without_a_uri_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFLOE_CATALOG__DEMO__WAREHOUSE", "file:///wh")
    with pytest.raises(InputError, match="no uri"):
        open_catalog("demo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[catalog.demo", "not valid TOML"),
        ("[catalog.demo]\nurl = 'x'", "url = 'x'"),
        ("[catalog.demo]\nuri = 5", "uri = 5"),
        ("[catalog.demo.s3]\nendpoint = ['x']", r"s3\.endpoint = "),
        ("catalog = 3", "not a table"),
        ("[catalog]\ndemo = 'x'", "not a table"),
    ],
)
def test_a_wrong_file_is_named(home: Path, text: str, message: str) -> None:
    (home / "icefloe.toml").write_text(text, "utf-8")
    with pytest.raises(InputError, match=message) as caught:
        open_catalog("demo")
    assert str(home / "icefloe.toml") in str(caught.value)


def test_a_catalog_in_memory_is_shared_by_name() -> None:
    one = open_catalog("mine", uri="memory://", warehouse="memory://a")
    assert open_catalog("mine", uri="memory://", warehouse="memory://a") is one
    assert open_catalog("other", uri="memory://", warehouse="memory://a") is not one


def test_a_database_url_makes_a_sql_catalog(tmp_path: Path) -> None:
    assert isinstance(open_catalog("demo", uri=f"sqlite:///{tmp_path}/x.db"), SqlCatalog)


def test_properties_come_from_every_source(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "icefloe.toml").write_text(
        '[catalog.demo]\nuri = "memory://"\n"s3.region" = "eu"\n[catalog.demo.s3]\nendpoint = "file"\n'
        "path-style-access = true\n",
        "utf-8",
    )
    monkeypatch.setenv("ICEFLOE_CATALOG__DEMO__S3__ACCESS_KEY_ID", "env")
    monkeypatch.setenv("ICEFLOE_CATALOG__DEMO__S3__ENDPOINT", "env")
    found = catalog_settings("demo", properties={"s3.region": "argument"}).properties
    assert found == {
        "s3.region": "argument",
        "s3.endpoint": "env",
        "s3.path-style-access": "true",
        "s3.access-key-id": "env",
    }


def test_secrets_are_not_shown() -> None:
    settings = catalog_settings(
        "demo", uri="postgresql://ann:secret@h/d", properties={"s3.secret-access-key": "secret"}
    )
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"uri": "memory://"}, MemoryCatalog),
        ({"type": "in-memory"}, MemoryCatalog),
        ({"type": "memory", "warehouse": "memory://x"}, MemoryCatalog),
        ({"uri": "file:///tmp/wh"}, FilesCatalog),
        ({"type": "hadoop", "warehouse": "/tmp/wh"}, FilesCatalog),
        ({"type": "FILES", "warehouse": "file:///tmp/wh"}, FilesCatalog),
        ({"type": "sql", "uri": "sqlite:///x.db"}, SqlCatalog),
    ],
)
def test_a_type_or_a_uri_tells_the_kind_of_catalog(given: dict[str, str], kind: type) -> None:
    assert type(open_catalog("demo", **given)) is kind


@pytest.mark.parametrize(
    ("given", "type_"),
    [
        ({"type": "glue"}, "glue"),
        ({"uri": "https://host/api"}, "rest"),
        ({"uri": "thrift://host:9083"}, "hive"),
        ({"type": "rest", "uri": "sqlite:///x.db"}, "rest"),
    ],
)
def test_a_kind_that_is_not_opened_is_named(given: dict[str, str], type_: str) -> None:
    with pytest.raises(UnsupportedError, match=f"type '{type_}'"):
        open_catalog("demo", **given)


@pytest.mark.parametrize(("type_", "missing"), [("sql", "uri"), ("files", "warehouse")])
def test_a_type_says_what_it_needs(type_: str, missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        open_catalog("demo", type=type_)


def yaml_file(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / ".pyiceberg.yaml").write_text(text, "utf-8")


def of_pyiceberg(key: str) -> str:
    return f"catalog:\n  demo:\n    uri: memory://\n    warehouse: memory://{key}\n"


def test_the_configuration_of_pyiceberg_is_a_fallback(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml_file(tmp_path / "here", of_pyiceberg("here"))
    assert open_catalog("demo").warehouse == "memory://here"
    yaml_file(home, of_pyiceberg("home"))
    assert open_catalog("demo").warehouse == "memory://home"
    yaml_file(tmp_path / "py", of_pyiceberg("py"))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path / "py"))
    assert open_catalog("demo").warehouse == "memory://py"
    monkeypatch.setenv("PYICEBERG_CATALOG__DEMO__WAREHOUSE", "memory://env")
    assert open_catalog("demo").warehouse == "memory://env"
    configure(home, "demo", "ours")
    assert open_catalog("demo").warehouse == f"file://{home}/ours"


def test_properties_of_pyiceberg_are_taken_as_they_are(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml_file(
        home,
        "catalog:\n  demo:\n    type: in-memory\n    s3.endpoint: http://h\n    s3.connect-timeout: 5\n"
        "    s3.force-virtual-addressing: True\n    unheard-of: 1\n",
    )
    monkeypatch.setenv("PYICEBERG_CATALOG__DEMO__S3__SECRET_ACCESS_KEY", "x")
    assert catalog_settings("demo").properties == {
        "s3.endpoint": "http://h",
        "s3.connect-timeout": "5",
        "s3.force-virtual-addressing": "true",
        "unheard-of": "1",
        "s3.secret-access-key": "x",
    }


def test_the_catalog_meant_by_default_is_configured(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_name() == "default"
    yaml_file(home, "default-catalog: theirs\n")
    assert default_name() == "theirs"
    monkeypatch.setenv("PYICEBERG_DEFAULT_CATALOG", "theirs-too")
    assert default_name() == "theirs-too"
    (home / "icefloe.toml").write_text("default-catalog = 'ours'\n", "utf-8")
    assert default_name() == "ours"
    monkeypatch.setenv("ICEFLOE_DEFAULT_CATALOG", "mine")
    assert default_name() == "mine"


@pytest.mark.parametrize("text", ["[", "- a\n", "catalog: 3\n", "catalog:\n  demo: x\n"])
def test_a_wrong_file_of_pyiceberg_is_named(home: Path, text: str) -> None:
    yaml_file(home, text)
    with pytest.raises(InputError, match=r"\.pyiceberg\.yaml"):
        open_catalog("demo")


def test_a_file_of_pyiceberg_without_a_yaml_reader_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml_file(home, of_pyiceberg("home"))
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(UnsupportedError, match="pip install pyyaml"):
        open_catalog("demo")
    configure(home, "demo", "ours")
    assert open_catalog("demo").warehouse == f"file://{home}/ours"
