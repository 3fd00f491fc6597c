"""A contender's process: it is sent how much to do and answers with samples, a line of JSON each way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from measure import Sample

HERE = Path(__file__).resolve().parent


class Worker:
    """A process of its own, so that no contender carries another one's libraries, threads or memory."""

    def __init__(self, script: str, *arguments: str) -> None:
        command = [sys.executable, str(HERE / script), *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._name = " ".join(arguments)
        self._answer()  # it has imported its libraries and made its table, and disturbs nobody from now on

    def run(self, count: int) -> list[Sample]:
        """Do it ``count`` times; a sample of each."""
        if self._process.stdin is None:
            raise RuntimeError("the worker has no pipe")
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> list[Sample]:
        line = "" if self._process.stdout is None else self._process.stdout.readline()
        if line == "":
            raise RuntimeError(f"the process of {self._name} ended with code {self._process.wait()}")
        found: list[Sample] = json.loads(line)
        return found

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
