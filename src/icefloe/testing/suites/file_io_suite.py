"""What every FileIO must do. To run it, inherit from ``FileIOSuite`` and give the fixtures ``io`` and ``root``.

Storage that cannot make a put conditional inherits from ``FileIOWithoutPutSuite``: it must say so, and never pretend.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.errors import AlreadyExists, CorruptFile, InputError, NoSuchFile, UnsupportedError
from icefloe.io.exclusive import check_exclusive
from icefloe.io.file_io import FileIO

ODD_NAMES = (
    "a b",
    "a%20b",
    "100%",
    "x=a%2Fb",
    "Grüße-雪-🧊",
    "q?x#y",
    "semi;colon&amp",
    "it's",
    "a+b",
    "-dash",
    ".hid",
)
_WORKERS = 8


class _Suite:
    """Everything but ``put_if_absent``."""

    @pytest.fixture
    def io(self) -> FileIO:
        """The implementation under test."""
        raise pytest.UsageError("a FileIOSuite needs the fixture 'io'")

    @pytest.fixture
    def root(self) -> str:
        """A location to write under."""
        raise pytest.UsageError("a FileIOSuite needs the fixture 'root'")

    def test_what_is_written_is_read_back(self, io: FileIO, root: str) -> None:
        """Written, then read whole."""
        io.write_new(f"{root}/d/e/file", b"some bytes")
        assert io.read(f"{root}/d/e/file") == b"some bytes"
        assert io.size(f"{root}/d/e/file") == 10
        assert io.exists(f"{root}/d/e/file")

    def test_an_empty_file_is_a_file(self, io: FileIO, root: str) -> None:
        """Zero bytes are not "nothing"."""
        io.write_new(f"{root}/empty", b"")
        assert io.exists(f"{root}/empty")
        assert io.read(f"{root}/empty") == b""
        assert io.size(f"{root}/empty") == 0
        assert io.read_range(f"{root}/empty", 0, 0) == b""

    def test_a_large_file_is_read_back(self, io: FileIO, root: str) -> None:
        """More than one system call may take."""
        data = bytes(range(256)) * 20_000
        io.write_new(f"{root}/large", data)
        assert io.read(f"{root}/large") == data
        assert io.read_range(f"{root}/large", 4_000_001, 70_000) == data[4_000_001:4_070_001]

    def test_a_file_is_not_written_twice(self, io: FileIO, root: str) -> None:
        """``write_new`` never overwrites."""
        io.write_new(f"{root}/once", b"first")
        with pytest.raises(AlreadyExists, match="once"):
            io.write_new(f"{root}/once", b"second")
        assert io.read(f"{root}/once") == b"first"

    def test_a_missing_file_is_named_in_the_error(self, io: FileIO, root: str) -> None:
        """Every reading verb raises ``NoSuchFile``."""
        missing = f"{root}/none/there"
        verbs: tuple[Callable[[], object], ...] = (
            lambda: io.read(missing),
            lambda: io.read_range(missing, 0, 1),
            lambda: io.size(missing),
            lambda: io.sync([missing]),
        )
        for verb in verbs:
            with pytest.raises(NoSuchFile) as caught:
                verb()
            assert missing in str(caught.value)
            assert caught.value.context["location"] == missing
        assert not io.exists(missing)

    def test_a_folder_is_not_a_file(self, io: FileIO, root: str) -> None:
        """A prefix of a location does not exist as a file."""
        io.write_new(f"{root}/folder/file", b"x")
        assert not io.exists(f"{root}/folder")
        with pytest.raises(NoSuchFile):
            io.size(f"{root}/folder")

    @pytest.mark.parametrize(("offset", "length"), [(0, 0), (0, 10), (3, 4), (9, 1), (10, 0)])
    def test_a_range_holds_exactly_its_bytes(self, io: FileIO, root: str, offset: int, length: int) -> None:
        """Ranges inside the file."""
        io.write_new(f"{root}/ten", b"0123456789")
        assert io.read_range(f"{root}/ten", offset, length) == b"0123456789"[offset : offset + length]

    @pytest.mark.parametrize(("offset", "length"), [(0, 11), (9, 2), (10, 1), (2**40, 1), (0, 2**62)])
    def test_a_range_past_the_end_is_a_corrupt_file(self, io: FileIO, root: str, offset: int, length: int) -> None:
        """Metadata promised more than there is."""
        io.write_new(f"{root}/ten", b"0123456789")
        with pytest.raises(CorruptFile, match="ends early"):
            io.read_range(f"{root}/ten", offset, length)

    @pytest.mark.parametrize(("offset", "length"), [(-1, 1), (0, -1)])
    def test_a_negative_range_is_refused(self, io: FileIO, root: str, offset: int, length: int) -> None:
        """Negative numbers do not count from the end."""
        io.write_new(f"{root}/ten", b"0123456789")
        with pytest.raises(InputError, match="negative"):
            io.read_range(f"{root}/ten", offset, length)

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_names_are_taken_literally(self, io: FileIO, root: str, name: str) -> None:
        """Spaces, percent signs and letters of any script are neither encoded nor decoded."""
        location = f"{root}/odd/{name}/{name}.txt"
        io.write_new(location, name.encode())
        assert io.read(location) == name.encode()
        assert [file.location for file in io.list(f"{root}/odd")] == [location]
        file_system, path = io.arrow_path(location)
        with file_system.open_input_file(path) as file:
            assert file.read() == name.encode()
        io.delete([location])
        assert not io.exists(location)

    @pytest.mark.parametrize("segment", [".", ".."])
    def test_dot_segments_are_refused(self, io: FileIO, root: str, segment: str) -> None:
        """A location never climbs out of its folder."""
        for location in (f"{root}/{segment}/x", f"{root}/{segment}"):
            with pytest.raises(InputError):
                io.read(location)
            with pytest.raises(InputError):
                io.write_new(location, b"")
            with pytest.raises(InputError):
                io.delete([location])

    def test_many_files_are_written_at_once(self, io: FileIO, root: str) -> None:
        """In several folders."""
        files = [(f"{root}/m/{number % 3}/{number}", str(number).encode()) for number in range(9)]
        io.write_many(files)
        assert [io.read(location) for location, _ in files] == [data for _, data in files]
        io.write_many([])

    def test_many_files_are_written_all_or_none(self, io: FileIO, root: str) -> None:
        """One name that is taken undoes the others, and spares the file that has it."""
        io.write_new(f"{root}/b", b"here before")
        with pytest.raises(AlreadyExists):
            io.write_many([(f"{root}/a", b"1"), (f"{root}/b", b"2"), (f"{root}/c", b"3")])
        assert not io.exists(f"{root}/a")
        assert not io.exists(f"{root}/c")
        assert io.read(f"{root}/b") == b"here before"

    def test_one_name_twice_in_many_files_is_refused(self, io: FileIO, root: str) -> None:
        """And nothing stays."""
        with pytest.raises(AlreadyExists):
            io.write_many([(f"{root}/a", b"1"), (f"{root}/a", b"2")])
        assert not io.exists(f"{root}/a")

    def test_a_listing_holds_every_file_below(self, io: FileIO, root: str) -> None:
        """At any depth, with sizes and times, and spelled like the prefix."""
        before = time.time_ns() // 1_000_000 - 2_000
        for name, size in (("a", 1), ("d/b", 2), ("d/e/c", 3)):
            io.write_new(f"{root}/l/{name}", b"x" * size)
        io.write_new(f"{root}/l2/not-this", b"")
        for prefix in (f"{root}/l", f"{root}/l/"):
            files = sorted(io.list(prefix), key=lambda file: file.size)
            assert [(file.location, file.size) for file in files] == [
                (f"{root}/l/a", 1),
                (f"{root}/l/d/b", 2),
                (f"{root}/l/d/e/c", 3),
            ]
            assert all(before < file.modified_ms < before + 60_000 for file in files)

    def test_a_listing_of_nothing_is_empty(self, io: FileIO, root: str) -> None:
        """A missing folder has no files."""
        assert list(io.list(f"{root}/missing")) == []

    def test_deleting_spares_what_was_not_named(self, io: FileIO, root: str) -> None:
        """And a file that is already gone is fine."""
        io.write_many([(f"{root}/a", b""), (f"{root}/b", b""), (f"{root}/c", b"")])
        io.delete([f"{root}/a", f"{root}/gone", f"{root}/b"])
        io.delete([])
        assert [file.location for file in io.list(root)] == [f"{root}/c"]

    def test_deleting_takes_names_literally(self, io: FileIO, root: str) -> None:
        """A star in a name is a plain character."""
        io.write_many([(f"{root}/g/{name}", b"") for name in ("a*", "ab", "[ab]", "a", "?")])
        io.delete([f"{root}/g/{name}" for name in ("a*", "[ab]", "?", "*")])
        assert sorted(file.location for file in io.list(f"{root}/g")) == [f"{root}/g/a", f"{root}/g/ab"]

    def test_a_deleted_name_can_be_written_again(self, io: FileIO, root: str) -> None:
        """Nothing remembers it."""
        io.write_new(f"{root}/d/again", b"1")
        io.delete([f"{root}/d/again"])
        io.write_new(f"{root}/d/again", b"2")
        assert io.read(f"{root}/d/again") == b"2"

    def test_arrow_writes_what_the_io_reads(self, io: FileIO, root: str) -> None:
        """Data files go through Arrow's own file systems, then are synced."""
        name = f"{uuid.uuid4()}.parquet"
        io.write_new(f"{root}/data/x=1/marker", b"")
        table = pa.table({"id": [1, 2, 3]})
        file_system, path = io.arrow_path(f"{root}/data/x=1/{name}")
        pq.write_table(table, path, filesystem=file_system)
        io.sync([f"{root}/data/x=1/{name}"])
        assert io.read(f"{root}/data/x=1/{name}")[:4] == b"PAR1"
        assert pq.read_table(path, filesystem=file_system, partitioning=None).equals(table)
        assert io.read_range(f"{root}/data/x=1/{name}", io.size(f"{root}/data/x=1/{name}") - 4, 4) == b"PAR1"


class FileIOSuite(_Suite):
    """Inherit, and override the two fixtures; ``root`` is a location under which nothing exists yet."""

    def test_a_put_wins_once(self, io: FileIO, root: str) -> None:
        """The second finds the first."""
        assert io.put_if_absent(f"{root}/p/v1", b"first") is True
        assert io.put_if_absent(f"{root}/p/v1", b"second") is False
        assert io.read(f"{root}/p/v1") == b"first"

    def test_a_put_leaves_only_its_file(self, io: FileIO, root: str) -> None:
        """Temporary files of winners and losers are gone."""
        io.put_if_absent(f"{root}/p/v1", b"first")
        io.put_if_absent(f"{root}/p/v1", b"second")
        assert [file.location for file in io.list(f"{root}/p")] == [f"{root}/p/v1"]

    def test_a_link_is_a_put_of_a_file(self, io: FileIO, root: str) -> None:
        """One winner, and the source stays."""
        io.write_many([(f"{root}/p/one", b"one"), (f"{root}/p/two", b"two")])
        assert io.link_if_absent(f"{root}/p/one", f"{root}/p/v1") is True
        assert io.link_if_absent(f"{root}/p/two", f"{root}/p/v1") is False
        io.delete([f"{root}/p/one"])
        assert [io.read(f"{root}/p/{name}") for name in ("v1", "two")] == [b"one", b"two"]

    def test_a_put_has_one_winner_among_threads(self, io: FileIO, root: str) -> None:
        """And everyone reads the winner's bytes."""

        def attempt(worker: int) -> list[bool]:
            return [io.put_if_absent(f"{root}/race/{number}", b"%d" % worker * 500) for number in range(20)]

        with ThreadPoolExecutor(_WORKERS) as pool:
            answers = list(pool.map(attempt, range(_WORKERS)))
        for number in range(20):
            winners = [worker for worker in range(_WORKERS) if answers[worker][number]]
            assert len(winners) == 1
            assert io.read(f"{root}/race/{number}") == b"%d" % winners[0] * 500

    def test_the_put_is_found_to_be_exclusive(self, io: FileIO, root: str) -> None:
        """By the self-test, which leaves nothing behind."""
        check_exclusive(io, f"{root}/probe")
        assert list(io.list(f"{root}/probe")) == []


class FileIOWithoutPutSuite(_Suite):
    """For storage without a conditional put; the same two fixtures."""

    def test_a_put_is_refused(self, io: FileIO, root: str) -> None:
        """Rather than raced."""
        with pytest.raises(UnsupportedError, match="cannot put"):
            io.put_if_absent(f"{root}/p/v1", b"first")
        assert not io.exists(f"{root}/p/v1")
