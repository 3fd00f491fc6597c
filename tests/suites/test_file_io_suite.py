"""The FileIO suite, for every implementation and wrapper."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.testing.counting_io import CountingFileIO
from icefloe.testing.faulty_io import FaultyFileIO
from icefloe.testing.suites.file_io_suite import FileIOSuite


class TestLocalFileIO(FileIOSuite):
    @pytest.fixture
    def io(self) -> FileIO:
        return LocalFileIO()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/root"


class TestLocalFileIOByPath(TestLocalFileIO):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"{tmp_path}/root"


class TestLocalFileIOWithOneSlash(TestLocalFileIO):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file:{tmp_path}/root"


class TestMemoryFileIO(FileIOSuite):
    @pytest.fixture
    def io(self) -> FileIO:
        return MemoryFileIO()

    @pytest.fixture
    def root(self) -> str:
        return f"memory://{uuid.uuid4()}/root"


class TestCountingFileIO(TestMemoryFileIO):
    @pytest.fixture
    def io(self) -> FileIO:
        return CountingFileIO(MemoryFileIO())


class TestFaultyFileIOWithoutAFault(TestMemoryFileIO):
    @pytest.fixture
    def io(self) -> FileIO:
        return FaultyFileIO(MemoryFileIO())
