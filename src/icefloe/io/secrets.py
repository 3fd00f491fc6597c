"""Passwords in texts that people see: database URLs, endpoints, and what other libraries say about them."""

from __future__ import annotations

import re

HIDDEN = "***"
_PASSWORD = re.compile(r"(://[^:/?#@\s]*):[^/?#\s]*@")  # a password may contain @, a host does not
_USER = re.compile(r"(https?://)(?!\*\*\*@)[^:/?#@\s]+(?::\*\*\*)?@", re.IGNORECASE)  # may be a token
_VALUE = re.compile(r"(?i)([\w.%-]*(?:password|passwd|pwd|secret|token|signature|credential)[\w.%-]*=)[^&\s'\";,)]+")


def without_secrets(text: str) -> str:
    """A text with ``***`` for the passwords in its URLs, and for the values of parameters that hold one.

    >>> without_secrets("postgresql://me:secret@host/db?password=secret&sslmode=require")
    'postgresql://me:***@host/db?password=***&sslmode=require'
    >>> without_secrets("PUT http://key:secret@localhost:9000/b/x failed"), without_secrets("abfs://c@account/x")
    ('PUT http://***@localhost:9000/b/x failed', 'abfs://c@account/x')
    """
    text = _PASSWORD.sub(rf"\1:{HIDDEN}@", text)
    text = _USER.sub(rf"\1{HIDDEN}@", text)
    return _VALUE.sub(rf"\1{HIDDEN}", text)
