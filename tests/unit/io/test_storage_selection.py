"""Which storage serves a location, and how properties reach it."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable
from typing import Any

import fsspec
import pytest

from icefloe.errors import InputError, UnsupportedError
from icefloe.io.arrow_fs import ArrowFileIO
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.io.select import LOCAL, MEMORY, file_io
from icefloe.io.store_settings import open_store
from support.servers.faulty_s3 import scripted_s3


@pytest.mark.parametrize(
    ("location", "expected"), [("/a", LOCAL), ("file:/a", LOCAL), ("FILE:///a", LOCAL), ("memory://a/b", MEMORY)]
)
def test_storage_is_chosen_by_scheme(location: str, expected: object) -> None:
    assert file_io(location, {"s3.endpoint": "http://127.0.0.1:1"}) is expected


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3", "gs", "abfs", "abfss"])
def test_object_stores_are_known_by_every_scheme(scheme: str) -> None:
    assert isinstance(file_io(f"{scheme}://bucket/a"), ObjectStoreFileIO)


def test_storage_is_shared_by_those_who_reach_it_in_the_same_way() -> None:
    one = file_io("s3://a/x", {"s3.region": "eu-west-1", "warehouse": "s3://a"})
    assert file_io("s3a://b/y", {"warehouse": "other", "s3.region": "eu-west-1"}) is one
    assert file_io("s3://a/x", {"s3.region": "eu-west-2"}) is not one
    assert file_io("s3://a/x") is not one


def test_an_unknown_scheme_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"'ice'.*known schemes: abfs, .*file, .*memory, s3"):
        file_io("ice://container/x")


@pytest.mark.parametrize("location", ["a/b", "", "s3:x", "s3://b/../x", "file:///a\0"])
def test_what_is_no_location_is_refused(location: str) -> None:
    with pytest.raises(InputError):
        file_io(location)


def test_a_scheme_of_fsspec_is_served_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lake(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
        protocol = "lake"
        store: dict[str, Any] = {}  # noqa: RUF012
        pseudo_dirs = [""]  # noqa: RUF012

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return "/" + path.removeprefix("lake://").strip("/")

    fsspec.register_implementation("lake", Lake, clobber=True)
    io = file_io("lake://top/wh")
    io.write_new("lake://top/wh/a b%20c", b"1")
    assert isinstance(io, ArrowFileIO)
    assert io.read("lake://top/wh/a b%20c") == b"1"
    assert io.arrow_path("lake://top/wh/a b%20c")[1] == "/top/wh/a b%20c"
    assert file_io("lake://top/other") is io
    with pytest.raises(InputError, match="not in the storage lake://top"):
        io.read("lake://else/wh/a")


def without(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package were not installed."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("icefloe.io.object_store", "icefloe.io.store_settings"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    real: Callable[..., Any] = builtins.__import__

    def guarded(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    real_module = importlib.import_module

    def guarded_module(name: str, *args: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_module(name, *args)

    monkeypatch.setattr(builtins, "__import__", guarded)
    monkeypatch.setattr(importlib, "import_module", guarded_module)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without("obstore", monkeypatch)
    with pytest.raises(UnsupportedError, match=r"pip install 'icefloe\[s3\]'"):
        file_io("s3://bucket/x", {"s3.region": "nowhere"})


def test_without_fsspec_other_schemes_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    without("fsspec", monkeypatch)
    with pytest.raises(UnsupportedError, match="pip install fsspec"):
        file_io("ice://bucket/x")


def test_properties_become_settings_of_the_client() -> None:
    properties = {
        "s3.endpoint": "http://127.0.0.1:9000",
        "s3.access-key-id": "key",
        "client.secret-access-key": "secret",
        "s3.session-token": "token",
        "client.region": "eu-west-1",
        "s3.force-virtual-addressing": "true",
    }
    config = open_store("s3", "lake", properties, retries=0).config
    assert config["endpoint"] == "http://lake.127.0.0.1:9000"
    assert config["access_key_id"] == "key"
    assert config["secret_access_key"] == "secret"
    assert config["session_token"] == "token"
    assert config["region"] == "eu-west-1"
    assert str(config["virtual_hosted_style_request"]).lower() == "true"


def test_the_environment_is_read_and_properties_win(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_s3() as server:
        server.objects["/lake/x"] = b"1"
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.properties["s3.endpoint"])
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-env")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        assert ObjectStoreFileIO("s3", {"s3.region": "eu-west-1"}).read("s3://lake/x") == b"1"
        assert ObjectStoreFileIO("s3", {"s3.anonymous": "true"}).read("s3://lake/x") == b"1"
    signed, anonymous = server.authorizations
    assert "Credential=from-env/" in signed
    assert "/eu-west-1/s3/" in signed
    assert anonymous == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3.force-virtual-addressing", "yes"),
        ("s3.connect-timeout", "soon"),
        ("s3.request-timeout", "0"),
        ("s3.request-timeout", "1e300"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        open_store("s3", "lake", {name: value}, retries=0)


@pytest.mark.parametrize("name", ["s3.signer", "s3.role-arn", "client.profile-name"])
def test_a_setting_that_is_not_served_is_not_ignored(name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        open_store("s3", "lake", {name: "x"}, retries=0)


def test_the_account_of_an_azure_location_is_in_its_host() -> None:
    store = open_store("abfss", "lake@account.dfs.core.windows.net", {"adls.account-key": "a2V5"}, retries=0)
    assert store.config["account_name"] == "account"
    assert store.config["container_name"] == "lake"
