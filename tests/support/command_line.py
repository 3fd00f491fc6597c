"""Calls of the command line on one catalog, in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

import icefloe
from icefloe.cli.program import app


@dataclass(frozen=True)
class Answer:
    """What a call printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.out.splitlines()]


@dataclass(frozen=True)
class CommandLine:
    """The command line with the options of one catalog."""

    uri: str
    warehouse: str

    def __call__(self, *arguments: object, options: bool = True) -> Answer:
        shared = ["--uri", self.uri, "--warehouse", self.warehouse] if options else []
        result = CliRunner().invoke(app, [*(str(argument) for argument in arguments), *shared])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    def catalog(self) -> icefloe.Catalog:
        return icefloe.catalog(uri=self.uri, warehouse=self.warehouse)
