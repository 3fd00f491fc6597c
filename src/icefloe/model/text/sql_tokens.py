"""The tokens of SQL column lists and literals, and strings quoted as in Spark SQL.

Strings are written with backslashes, which every Spark reads; a doubled quote is read too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from icefloe.errors import InputError

Kind: TypeAlias = Literal["word", "name", "text", "number", "mark", "end"]

_TOKEN = re.compile(
    r"""
      (?P<gap>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[yslfdYSLFD])?(?!\w))
    | (?P<name>`(?:[^`]|``)+`)
    | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<word>\w+)
    | (?P<mark>[<>(),:\[\]+-])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS: tuple[Kind, ...] = ("number", "name", "text", "word", "mark")
_WRITTEN_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}
_READ_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "b": "\b", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)|(['\"])\3", re.DOTALL)
_SHOWN = 30  # characters of the text before and after an error


@dataclass(frozen=True, slots=True)
class Token:
    """A token; names and strings are without their quotes, and ``key`` has words in lower case."""

    kind: Kind
    text: str
    start: int

    @property
    def key(self) -> str:
        """The word in lower case, or the mark, that parsers compare; empty for other kinds."""
        return self.text.lower() if self.kind in ("word", "mark") else ""


class Tokens:
    """The tokens of a text, taken one by one; ``what`` says in errors what the text should be."""

    def __init__(self, text: str, what: str) -> None:
        self._text = text
        self._what = what
        self._tokens = _tokens(text)
        self._next = 0
        if self._tokens[-1].start < len(text):
            raise self.wrong("something else", self._tokens[-1])

    def peek(self) -> Token:
        """The next token, which stays the next one."""
        return self._tokens[self._next]

    def take(self) -> Token:
        """The next token; the last one, the end, is never used up."""
        token = self.peek()
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def skip(self, *keys: str) -> bool:
        """Take the next tokens if they are these keys; return whether they are."""
        upcoming = tuple(token.key for token in self._tokens[self._next : self._next + len(keys)])
        if upcoming == keys:
            self._next += len(keys)
        return upcoming == keys

    def expect(self, key: str) -> None:
        """Take this word or mark."""
        if not self.skip(key):
            raise self.wrong(repr(key))

    def end(self) -> None:
        """Refuse further text."""
        if self.peek().kind != "end":
            raise self.wrong("the end")

    def wrong(self, expected: str, token: Token | None = None) -> InputError:
        """The error that something else was expected where the next token is."""
        at = (self.peek() if token is None else token).start
        near = self._text[max(0, at - _SHOWN) : at + _SHOWN]
        return InputError(f"cannot read {self._what}: expected {expected} at position {at}, near {near!r}")


def _tokens(text: str) -> list[Token]:
    """All tokens, followed by an end token at the end of the text or at the first text that is no token."""
    tokens: list[Token] = []
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        for kind in _KINDS:
            if (part := match[kind]) is not None:
                tokens.append(Token(kind, _unquoted(part, kind), at))
        at = match.end()
    return [*tokens, Token("end", "", at)]


def _unquoted(text: str, kind: Kind) -> str:
    if kind == "name":
        return text[1:-1].replace("``", "`")
    return _ESCAPE.sub(_unescaped, text[1:-1]) if kind == "text" else text


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is not None:
        return chr(int(escape[1], 16))
    if escape[3] is not None:
        return escape[3]
    # As in Spark, the wildcards of LIKE keep their backslash.
    return escape[0] if escape[2] in "%_" else _READ_ESCAPES.get(escape[2], escape[2])


def quoted_text(text: str) -> str:
    """A string as SQL text.

    >>> print(quoted_text("it's"))
    'it\\'s'
    """
    return "'" + "".join(_WRITTEN_ESCAPES.get(char, char) for char in text) + "'"
