"""Converts Iceberg's storage properties to settings of the object-store client.

``s3.*`` and ``client.*``, ``gcs.*`` and ``adls.*`` properties are those of other Iceberg libraries. What is not set is
taken from the environment (``AWS_*``, ``GOOGLE_*``, ``AZURE_*``) by the client. Unsupported properties that change the
identity or the signature of requests are refused, not ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from obstore.store import AzureStore, GCSStore, S3Store

from icefloe.errors import InputError, UnsupportedError
from icefloe.io.secrets import without_secrets
from icefloe.io.storage_locations import GS
from icefloe.model.locations import S3

Properties = Mapping[str, str]
Names = Mapping[str, tuple[str, ...]]

_S3_NAMES: Names = {
    "access_key_id": ("s3.access-key-id", "client.access-key-id"),
    "secret_access_key": ("s3.secret-access-key", "client.secret-access-key"),
    "session_token": ("s3.session-token", "client.session-token"),
    "region": ("s3.region", "client.region"),
    "server_side_encryption": ("s3.server-side-encryption",),
    "sse_kms_key_id": ("s3.sse-kms-key-id",),
}
_GS_NAMES: Names = {"bearer_token": ("gcs.oauth2.token",), "base_url": ("gcs.service.host",)}
_ABFS_NAMES: Names = {
    "account_name": ("adls.account-name",),
    "account_key": ("adls.account-key",),
    "sas_key": ("adls.sas-token",),
    "tenant_id": ("adls.tenant-id",),
    "client_id": ("adls.client-id",),
    "client_secret": ("adls.client-secret",),
    "token": ("adls.token",),
}
_REFUSED = (
    "s3.signer",
    "s3.role-arn",
    "client.role-arn",
    "s3.profile-name",
    "client.profile-name",
    "adls.connection-string",
)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CONNECT_S, _READ_S = 5.0, 60.0
_REQUEST_S = 600.0  # a whole request; a stalled connection is closed much earlier


def open_store(scheme: str, authority: str, properties: Properties, *, retries: int) -> Any:
    """A client for one bucket or container that sends a failed request again up to ``retries`` times."""
    for name in _REFUSED:
        if name in properties:
            raise UnsupportedError(f"storage property {name!r} is not supported; give keys or a token", property=name)
    retry: Any = {
        "max_retries": retries,
        "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=2), "base": 2},
        "retry_timeout": timedelta(seconds=60),
    }
    try:
        return _builder(scheme)(authority, properties, retry)
    except InputError:
        raise
    except Exception as error:  # the client has many ways to refuse a setting
        reason = without_secrets(str(error).partition("\n")[0])
        raise InputError(f"cannot open {scheme}://{authority}: {reason}", location=f"{scheme}://{authority}") from error


def _builder(scheme: str) -> Callable[[str, Properties, Any], Any]:
    if scheme in S3:
        return _s3
    return _gs if scheme in GS else _abfs


def _s3(bucket: str, properties: Properties, retry: Any) -> Any:
    config: Any = _named(_S3_NAMES, properties)
    endpoints = (os.environ[name] for name in _ENDPOINTS if name in os.environ)
    endpoint = properties.get("s3.endpoint", next(endpoints, None))
    virtual = _flag("s3.force-virtual-addressing", properties)
    if endpoint is not None:
        config["endpoint"] = _with_bucket(endpoint, bucket) if virtual else endpoint
    config["virtual_hosted_style_request"] = virtual
    if _flag("s3.anonymous", properties):
        config["skip_signature"] = True
    client = _client(properties)
    client["allow_http"] = endpoint is not None and endpoint.startswith("http://")
    if "s3.proxy-uri" in properties:
        client["proxy_url"] = properties["s3.proxy-uri"]
    return S3Store(bucket, config=config, client_options=client, retry_config=retry)


def _gs(bucket: str, properties: Properties, retry: Any) -> Any:
    config: Any = _named(_GS_NAMES, properties)
    client = _client(properties)
    client["allow_http"] = str(config.get("base_url", "")).startswith("http://")
    return GCSStore(bucket, config=config, client_options=client, retry_config=retry)


def _abfs(authority: str, properties: Properties, retry: Any) -> Any:
    """``container@account.dfs.core.windows.net``, or a container alone with the account in the properties."""
    container, at, host = authority.partition("@")
    config: Any = _named(_ABFS_NAMES, properties)
    if at != "":
        config["account_name"] = host.partition(".")[0]
    return AzureStore(container, config=config, client_options=_client(properties), retry_config=retry)


def _named(names: Names, properties: Properties) -> dict[str, str]:
    """The client's settings, each from the first of its properties that is set."""
    values = {
        key: next((properties[name] for name in options if name in properties), None) for key, options in names.items()
    }
    return {key: value for key, value in values.items() if value is not None}


def _client(properties: Properties) -> Any:
    return {
        "connect_timeout": _seconds("s3.connect-timeout", properties, _CONNECT_S),
        "read_timeout": _seconds("s3.request-timeout", properties, _READ_S),
        "timeout": timedelta(seconds=_REQUEST_S),
    }


def _with_bucket(endpoint: str, bucket: str) -> str:
    """The endpoint of a bucket in a store that has one host name for each bucket.

    >>> _with_bucket("https://s3.example.com:9000", "lake")
    'https://lake.s3.example.com:9000'
    """
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(netloc=f"{bucket}.{parts.netloc}"))


def _flag(name: str, properties: Properties) -> bool:
    text = properties.get(name, "false").lower()
    if text not in ("true", "false"):
        raise InputError(f"storage property {name!r} is {text!r}; it takes true or false", property=name)
    return text == "true"


def _seconds(name: str, properties: Properties, default: float) -> timedelta:
    text = properties.get(name, str(default))
    try:
        length = timedelta(seconds=float(text))
    except (ValueError, OverflowError) as error:
        raise InputError(f"storage property {name!r} is {text!r}; it takes seconds", property=name) from error
    if length <= timedelta(0):
        raise InputError(f"storage property {name!r} is {text!r}; it takes seconds above 0", property=name)
    return length
