"""Parses AND, OR, NOT and parentheses of a filter text; the conditions between them are parsed elsewhere.

Generated filters may nest hundreds of parentheses, more than a recursive parser can handle. This parser has its own
stack and passes only the atoms, the parts without logic (``a = 1``, ``b IN (1, 2)``), to another parser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from icefloe.errors import InputError
from icefloe.expr.filter.nodes import Expr, conjunction, disjunction, negation


@dataclass(slots=True)
class _Group:
    """What has been read since an open parenthesis: finished alternatives, factors of the current one, and NOTs."""

    alternatives: list[Expr] = field(default_factory=list)
    factors: list[Expr] = field(default_factory=list)
    negated: bool = False

    def add(self, expr: Expr) -> None:
        self.factors.append(negation(expr) if self.negated else expr)
        self.negated = False

    def end_alternative(self) -> None:
        self.alternatives.append(conjunction(self.factors))
        self.factors = []

    def close(self) -> Expr:
        self.end_alternative()
        return disjunction(self.alternatives)


def parse_logic(text: str, atom: Callable[[str], Expr]) -> Expr:
    """Parse the filter of a text; ``atom`` parses each part without AND, OR and NOT.

    >>> from icefloe.expr.filter.nodes import Op, Predicate
    >>> parse_logic("NOT (a)", lambda part: Predicate(Op.IS_NULL, part))
    Predicate(op=<Op.NOT_NULL: 'is not null'>, term='a', literals=())
    """
    text, tokens = _tokens(text)
    closing = _matching(tokens, text)
    groups = [_Group()]
    expecting, index = True, 0
    while index < len(tokens):
        token = tokens[index]
        kind = token.token_type
        if expecting and kind is TokenType.NOT:
            groups[-1].negated = not groups[-1].negated
        elif expecting and kind is TokenType.L_PAREN and _ends_operand(tokens, closing[index] + 1):
            groups.append(_Group())
        elif expecting:
            last = _atom_end(tokens, closing, index)
            if last < index:
                raise _broken(text, f"something is missing before {token.text!r}")
            groups[-1].add(atom(text[token.start : tokens[last].end + 1]))
            expecting, index = False, last
        elif kind is TokenType.R_PAREN:
            closed = groups.pop().close()
            groups[-1].add(closed)
        else:
            if kind is TokenType.OR:
                groups[-1].end_alternative()
            expecting = True
        index += 1
    if expecting:
        raise _broken(text, "it ends where a condition should follow")
    return groups[0].close()


def _tokens(text: str) -> tuple[str, list[Any]]:
    """The tokens of a text, and the text they belong to, in which a doubled quote is an escaped one."""
    tokens = _tokenize(text)
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise _broken(text, "a filter is one condition, without ';'")
    # Spark 4 and standard SQL read 'it''s' as it's; the tokenizer sees two strings that touch.
    doubled = [
        left.end
        for left, right in pairwise(tokens)
        if left.token_type is right.token_type is TokenType.STRING
        and left.end + 1 == right.start
        and text[left.end : right.start + 1] == "''"
    ]
    if len(doubled) == 0:
        return text, tokens
    characters = list(text)
    for position in doubled:
        characters[position] = "\\"
    text = "".join(characters)
    return text, _tokenize(text)


def _tokenize(text: str) -> list[Any]:
    try:
        return list(sqlglot.tokenize(text, read="spark"))
    except SqlglotError as error:
        raise _broken(text, str(error)) from error


def _matching(tokens: list[Any], text: str) -> dict[int, int]:
    """The index of the closing parenthesis of each opening one."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            opened.append(index)
        elif token.token_type is TokenType.R_PAREN:
            if len(opened) == 0:
                raise _broken(text, "a ')' has no '('")
            closing[opened.pop()] = index
    if len(opened) > 0:
        raise _broken(text, "a '(' is not closed")
    return closing


def _ends_operand(tokens: list[Any], index: int) -> bool:
    """Whether an operand of AND or OR ends before this token."""
    return index == len(tokens) or tokens[index].token_type in (TokenType.AND, TokenType.OR, TokenType.R_PAREN)


def _atom_end(tokens: list[Any], closing: dict[int, int], start: int) -> int:
    """The last token of the atom that starts here; the AND of a BETWEEN belongs to it."""
    index, between = start, 0
    while index < len(tokens):
        kind = tokens[index].token_type
        if kind is TokenType.L_PAREN:
            index = closing[index]
        elif kind is TokenType.BETWEEN:
            between += 1
        elif kind is TokenType.AND and between > 0:
            between -= 1
        elif _ends_operand(tokens, index):
            break
        index += 1
    return index - 1


def _broken(text: str, reason: str) -> InputError:
    shown = text if len(text) <= 200 else f"{text[:200]}..."
    return InputError(f"cannot parse the filter {shown!r}: {reason}", filter=text)
