"""How a verb is registered and run: options that all verbs share, errors in one paragraph, exit codes."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from icefloe.cli.output import Listing, Output, Record, show
from icefloe.cli.session import Session
from icefloe.errors import IcefloeError, InputError

Verb: TypeAlias = Callable[..., Listing | Record]


class ExitCode(IntEnum):
    """What a script learns from the exit code."""

    OK = 0
    ERROR = 1
    USAGE = 2  # the call must be corrected
    FINDINGS = 3  # of verify and health


_SHARED = "Options of all verbs"
_OPTIONS: dict[str, tuple[Any, Any]] = {
    "catalog_name": (
        Annotated[
            str | None,
            typer.Option("--catalog", "-c", help="Name of the catalog in the configuration.", rich_help_panel=_SHARED),
        ],
        None,
    ),
    "uri": (
        Annotated[
            str | None,
            typer.Option(help="Catalog: sqlite:///cat.db, postgresql://host/db, file:///wh.", rich_help_panel=_SHARED),
        ],
        None,
    ),
    "warehouse": (
        Annotated[str | None, typer.Option(help="Folder of new tables.", rich_help_panel=_SHARED)],
        None,
    ),
    "output": (
        Annotated[Output, typer.Option("--output", "-o", help="Form of the result.", rich_help_panel=_SHARED)],
        Output.TABLE,
    ),
    "debug": (
        Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_SHARED)],
        False,
    ),
}


def add_verb(app: typer.Typer, function: Verb, name: str, panel: str) -> None:
    """Add a function of a session as a verb; its docstring is the help, its parameters are options and arguments."""

    def run(**arguments: Any) -> None:
        session = Session(**{option: arguments.pop(option) for option in _OPTIONS})
        raise typer.Exit(_run(session, lambda: function(session, **arguments)))

    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in list(inspect.signature(function).parameters.values())[1:]
    ]
    shared = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for option, (annotation, default) in _OPTIONS.items()
    ]
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
    app.command(name, help=inspect.getdoc(function), rich_help_panel=panel)(run)


def _run(session: Session, verb: Callable[[], Listing | Record]) -> ExitCode:
    """Run a verb and print its result or its error."""
    try:
        result = verb()
        show(result, session.output)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # so that the interpreter does not fail at its end
        return ExitCode.OK
    except IcefloeError as error:
        if session.debug:
            traceback.print_exc()
        else:
            sys.stderr.write(error_text(error))
        return ExitCode.USAGE if isinstance(error, InputError) else ExitCode.ERROR
    return ExitCode.FINDINGS if result.findings else ExitCode.OK


def error_text(error: IcefloeError) -> str:
    """An error as one paragraph, with the next step.

    >>> print(error_text(InputError("rollback: say where to")), end="")
    error: rollback: say where to. Next step: Correct the argument that the message names.
    """
    return f"error: {str(error).rstrip('.')}. Next step: {error.next_step}\n"
