"""The program ``icefloe``. typer and rich are optional, so they are loaded here and their absence is explained."""

from __future__ import annotations

import sys

from icefloe.errors import UnsupportedError
from icefloe.lazy import load_optional


def main() -> None:
    """Run the command line with the arguments of the process."""
    try:
        program = load_optional("icefloe.cli.program", needed_by="the command line")
    except UnsupportedError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    program.run()
