"""The FileIO suite, for every implementation and wrapper."""

from __future__ import annotations

import uuid
from pathlib import Path

import fsspec
import pytest
from pyarrow import fs

from icefloe.io.arrow_fs import ArrowFileIO, fsspec_file_io
from icefloe.io.file_io import FileIO
from icefloe.io.local import LocalFileIO
from icefloe.io.memory import MemoryFileIO
from icefloe.io.object_store import ObjectStoreFileIO
from icefloe.testing.counting_io import CountingFileIO
from icefloe.testing.faulty_io import FaultyFileIO
from icefloe.testing.suites.file_io_suite import FileIOSuite, FileIOWithoutPutSuite
from support.servers.s3 import S3Server


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


class TestArrowFileIO(TestLocalFileIO):
    @pytest.fixture
    def io(self) -> FileIO:
        return ArrowFileIO(fs.LocalFileSystem(), root="file:///")


class TestArrowFileIOInAFolder(FileIOWithoutPutSuite):
    @pytest.fixture
    def io(self, tmp_path: Path) -> FileIO:
        return ArrowFileIO(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), root="lake://top/")

    @pytest.fixture
    def root(self) -> str:
        return "lake://top/root"


class TestFsspecFilesInMemory(FileIOWithoutPutSuite):
    @pytest.fixture
    def io(self) -> FileIO:
        return fsspec_file_io(fsspec.filesystem("memory"), root="memory://wh", base="/wh")

    @pytest.fixture
    def root(self) -> str:
        return f"memory://wh/{uuid.uuid4()}"


class TestFsspecFilesOnDisk(FileIOWithoutPutSuite):
    @pytest.fixture
    def io(self) -> FileIO:
        return fsspec_file_io(fsspec.filesystem("file"), root="file:///")

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/root"


class TestObjectStoreFileIO(FileIOSuite):
    @pytest.fixture
    def io(self, s3: S3Server) -> FileIO:
        return ObjectStoreFileIO("s3", s3.properties)

    @pytest.fixture
    def root(self, s3: S3Server) -> str:
        return f"s3://{s3.new_bucket()}/root"


class TestObjectStoreFileIOByAnotherScheme(TestObjectStoreFileIO):
    @pytest.fixture
    def root(self, s3: S3Server) -> str:
        return f"s3a://{s3.new_bucket()}"


class TestCountingFileIO(TestMemoryFileIO):
    @pytest.fixture
    def io(self) -> FileIO:
        return CountingFileIO(MemoryFileIO())


class TestFaultyFileIOWithoutAFault(TestMemoryFileIO):
    @pytest.fixture
    def io(self) -> FileIO:
        return FaultyFileIO(MemoryFileIO())
