"""Passwords are not shown: not in errors and their causes, not in the texts of catalogs and settings."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from icefloe.catalogs.config import catalog_settings
from icefloe.catalogs.sql import SqlCatalog
from icefloe.env import Env
from icefloe.errors import IcefloeError
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.io.secrets import without_secrets

SECRET = "p4ss"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:p4ss@h:5/db", "postgresql://me:***@h:5/db"),
        ("postgresql://me:p4:s/s@h/db", "postgresql://me:p4:s/s@h/db"),  # a slash ends the host
        ("postgresql://me:p@4ss@h/db", "postgresql://me:***@h/db"),
        ("postgresql:///db?host=h&password=p4ss&user=me", "postgresql:///db?host=h&password=***&user=me"),
        ("postgresql://h/db?sslpassword=p4ss", "postgresql://h/db?sslpassword=***"),
        ("GET http://me:p4ss@h:9000/b/x in 3 ms", "GET http://***@h:9000/b/x in 3 ms"),
        ("GET https://token@h/b/x?X-Amz-Signature=p4ss", "GET https://***@h/b/x?X-Amz-Signature=***"),
        ("abfss://container@account.dfs.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/x"),
        ("s3://b/a@b/c:d@e and user@example.com", "s3://b/a@b/c:d@e and user@example.com"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


VERBS: list[Callable[[ObjectStoreFileIO], object]] = [
    lambda io: io.read("s3://b/x"),
    lambda io: io.size("s3://b/x"),
    lambda io: io.write_new("s3://b/x", b"1"),
    lambda io: io.put_if_absent("s3://b/x", b"1"),
    lambda io: io.delete(["s3://b/x", "s3://b/y"]),
    lambda io: list(io.list("s3://b/x")),
]


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_the_password_of_an_endpoint_is_in_no_error(verb: Callable[[ObjectStoreFileIO], object]) -> None:
    properties = {
        "s3.endpoint": f"http://me:{SECRET}@127.0.0.1:9",
        "s3.access-key-id": "key",
        "s3.secret-access-key": SECRET,
        "s3.region": "us-east-1",
    }
    io = ObjectStoreFileIO("s3", properties, Env(sleep=lambda seconds: None))
    with pytest.raises(IcefloeError) as caught:
        verb(io)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(io)


@pytest.mark.parametrize("query", ["user=ann&password=p4ss", "sslpassword=p4ss&user=ann"])
def test_a_password_among_the_parameters_of_a_database_is_not_shown(tmp_path: Path, query: str) -> None:
    with pytest.raises(IcefloeError) as caught:
        SqlCatalog("demo", f"postgresql:///db?host={tmp_path}&{query}")
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.context)


def test_a_password_in_what_is_no_url_is_not_shown() -> None:
    with pytest.raises(IcefloeError) as caught:
        SqlCatalog("demo", "postgresql//nothing?password=p4ss")
    assert SECRET not in str(caught.value)


def test_settings_show_no_secrets() -> None:
    uri = f"postgresql://me:{SECRET}@h/db?password={SECRET}"
    shown = repr(catalog_settings("demo", uri=uri, properties={"s3.secret-access-key": SECRET}))
    assert SECRET not in shown
