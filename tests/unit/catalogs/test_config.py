"""Finding a catalog by name: arguments, environment, file, default."""

from __future__ import annotations

from pathlib import Path

import pytest

from icefloe.catalogs.config import open_catalog
from icefloe.catalogs.sql import SqlCatalog
from icefloe.errors import InputError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder and a current folder with nothing in them."""
    (tmp_path / "home").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def configure(folder: Path, name: str, key: str) -> None:
    (folder / "icefloe.toml").write_text(
        f'[catalog.{name}]\nuri = "sqlite:///{folder}/{key}.db"\nwarehouse = "{folder}/{key}"\n', "utf-8"
    )


def test_a_catalog_configured_nowhere_lives_in_the_home_folder(home: Path) -> None:
    catalog = open_catalog("demo")
    assert (catalog.name, catalog.warehouse) == ("demo", f"file://{home}/.icefloe/warehouse")
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
