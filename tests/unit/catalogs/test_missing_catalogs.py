"""A catalog that does not exist is an error; only the default catalog and ``create=True`` make new ones.

Scar: a misspelt name, or a URI with a misspelt folder, opened a new and empty catalog without a word.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import icefloe

pytestmark = pytest.mark.usefixtures("home")


def test_a_name_that_is_not_configured_is_refused_with_the_names_of_those_that_are(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "icefloe.toml").write_text('[catalog.lake]\nuri = "memory://"\n', "utf-8")
    (home / ".pyiceberg.yaml").write_text("catalog:\n  theirs:\n    uri: memory://\n", "utf-8")
    monkeypatch.setenv("ICEFLOE_CATALOG__SHOP__URI", "memory://")
    with pytest.raises(icefloe.NotFound, match=r"no catalog 'leak'; there are: lake, shop, theirs") as caught:
        icefloe.catalog("leak")
    assert caught.value.context == {"catalog": "leak", "catalogs": ["lake", "shop", "theirs"]}
    assert "create=True" in caught.value.next_step
    assert not (home / ".icefloe").exists()


def test_where_nothing_is_configured_the_next_step_is_said() -> None:
    with pytest.raises(icefloe.NotFound, match=r"no catalog 'demo'; none is configured"):
        icefloe.catalog("demo")


def test_create_makes_a_catalog_that_is_found_by_its_name_once_it_has_a_namespace(home: Path) -> None:
    icefloe.catalog("demo", create=True).create_namespace("db")
    assert icefloe.catalog("demo").list_namespaces() == ["db"]
    with pytest.raises(icefloe.NotFound, match=r"no catalog 'Demo'; there are: demo"):
        icefloe.catalog("Demo")
    assert icefloe.catalog("other", create=True).list_namespaces() == []


def test_the_default_catalog_makes_itself(home: Path) -> None:
    assert icefloe.catalog().list_namespaces() == []
    assert icefloe.catalog("default", create=False).list_namespaces() == []
    assert (home / ".icefloe/catalog.db").is_file()


def test_a_default_that_is_not_configured_is_no_default(home: Path) -> None:
    (home / "icefloe.toml").write_text('default-catalog = "leak"\n[catalog.lake]\nuri = "memory://"\n', "utf-8")
    with pytest.raises(icefloe.NotFound, match="no catalog 'leak'; there are: lake"):
        icefloe.catalog()


@pytest.mark.parametrize("uri", ["sqlite:///{}/wrong/cat.db", "file://{}/wrong/wh"])
def test_a_uri_with_a_wrong_folder_is_refused(tmp_path: Path, uri: str) -> None:
    with pytest.raises(icefloe.NotFound, match=f"catalog 'x' .* folder {tmp_path}/wrong does not exist"):
        icefloe.catalog("x", uri=uri.format(tmp_path))
    assert not (tmp_path / "wrong").exists()
    made = icefloe.catalog("x", uri=uri.format(tmp_path), warehouse=f"file://{tmp_path}/wrong/wh", create=True)
    made.create_table("db.t", schema="id bigint")
    assert icefloe.catalog("x", uri=uri.format(tmp_path), create=False).list_tables("db") == ["db.t"]


@pytest.mark.parametrize("uri", ["sqlite:///{}/cat.db", "file://{}/wh"])
def test_a_new_file_or_folder_is_made_in_a_folder_that_exists_unless_create_is_false(tmp_path: Path, uri: str) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(icefloe.NotFound, match=f"catalog 'x' does not exist: there is no {tmp_path}"):
        icefloe.catalog("x", uri=uri.format(tmp_path), create=False)
    assert sorted(tmp_path.iterdir()) == before
    assert icefloe.catalog("x", uri=uri.format(tmp_path)).list_namespaces() == []


def test_a_configured_catalog_in_a_missing_folder_is_refused(home: Path) -> None:
    (home / "icefloe.toml").write_text(f'[catalog.lake]\nuri = "sqlite:///{home}/wrong/cat.db"\n', "utf-8")
    with pytest.raises(icefloe.NotFound, match="catalog 'lake'"):
        icefloe.catalog("lake")
