"""What every catalog must do. To run it, inherit from ``CatalogSuite`` and give the fixture ``catalog``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from icefloe.catalogs.catalog import Catalog, Stale, Swap, Swapped
from icefloe.catalogs.names import NameLike
from icefloe.errors import AlreadyExists, InputError, NoSuchNamespace, NoSuchTable, UnsupportedError

_WORKERS, _SWAPS = 8, 25


class CatalogSuite:
    """Inherit, and override the fixture; the catalog must be empty.

    Tests speak of metadata files by labels. A catalog that names metadata files itself overrides ``place``, which gives
    a new file of a label, and ``label``, which returns it for a result of ``load``.
    """

    renames = True  # whether tables can be renamed
    keeps_properties = True  # whether namespaces have properties
    forgets_files = True  # whether a namespace is empty when its tables are dropped, though their files stay

    @pytest.fixture
    def catalog(self) -> Catalog:
        """The implementation under test."""
        raise pytest.UsageError("a CatalogSuite needs the fixture 'catalog'")

    def place(self, catalog: Catalog, name: NameLike, label: str) -> str:
        """The location of a metadata file for a table."""
        return f"file:///wh/{label}.metadata.json"

    def label(self, location: str) -> str:
        """The label that was passed to ``place``."""
        return location.removeprefix("file:///wh/").removesuffix(".metadata.json")

    def create(self, catalog: Catalog, name: NameLike, label: str) -> None:
        """Enter a table."""
        catalog.create(name, self.place(catalog, name, label))

    def swap(self, catalog: Catalog, name: NameLike, expected: str, label: str) -> Swap:
        """Move the pointer from a location to a new metadata file."""
        return catalog.swap(name, expected, self.place(catalog, name, label))

    def at(self, catalog: Catalog, name: NameLike) -> str:
        """The label of a table's metadata."""
        return self.label(catalog.load(name))

    def test_a_table_is_created_and_loaded(self, catalog: Catalog) -> None:
        """By dotted text or by tuple."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        assert self.at(catalog, "db.orders") == "one"
        assert self.at(catalog, ("db", "orders")) == "one"

    def test_a_table_needs_its_namespace(self, catalog: Catalog) -> None:
        """A misspelt namespace is not made."""
        catalog.create_namespace("sales")
        with pytest.raises(NoSuchNamespace, match="similar names: sales"):
            catalog.create("sale.orders", "file:///wh/one.metadata.json")
        assert catalog.list_namespaces() == (("sales",),)

    def test_a_name_is_taken_once(self, catalog: Catalog) -> None:
        """The first table stays."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        with pytest.raises(AlreadyExists, match=r"db\.orders"):
            self.create(catalog, "db.orders", "two")
        assert self.at(catalog, "db.orders") == "one"

    def test_a_missing_table_comes_with_suggestions(self, catalog: Catalog) -> None:
        """Every verb on tables raises ``NoSuchTable``."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        verbs: tuple[Callable[[], object], ...] = (
            lambda: catalog.load("db.order"),
            lambda: self.swap(catalog, "db.order", "file:///wh/one.metadata.json", "two"),
            lambda: catalog.drop("db.order"),
            lambda: catalog.rename("db.order", "db.other"),
        )
        for verb in verbs:
            with pytest.raises(NoSuchTable, match=r"no table db\.order; similar names: db\.orders") as caught:
                verb()
            assert caught.value.context["table"] == "db.order"

    def test_a_swap_from_the_expected_location_moves_the_pointer(self, catalog: Catalog) -> None:
        """Check, then put."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        for label in ("two", "three"):
            outcome = self.swap(catalog, "db.orders", catalog.load("db.orders"), label)
            assert isinstance(outcome, Swapped)
            assert self.at(catalog, "db.orders") == label
            assert outcome.pointer in (None, catalog.load("db.orders"))

    def test_a_swap_from_elsewhere_is_stale_and_changes_nothing(self, catalog: Catalog) -> None:
        """The one who comes second learns it."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        base = catalog.load("db.orders")
        self.swap(catalog, "db.orders", base, "two")
        for expected in (base, "file:///wh/never.metadata.json", ""):
            assert self.swap(catalog, "db.orders", expected, "three") == Stale()
        assert self.at(catalog, "db.orders") == "two"

    def test_a_swap_touches_one_table(self, catalog: Catalog) -> None:
        """Not its neighbours, even when their pointers are equal."""
        names = ("db.orders", "db.other", "db2.orders")
        catalog.create_namespace("db")
        catalog.create_namespace("db2")
        for name in names:
            self.create(catalog, name, "one")
        assert isinstance(self.swap(catalog, "db.orders", catalog.load("db.orders"), "two"), Swapped)
        assert [self.at(catalog, name) for name in names] == ["two", "one", "one"]

    def test_a_swap_to_the_same_location_is_refused(self, catalog: Catalog) -> None:
        """New metadata has a new name, else it is undecided who won."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        base = catalog.load("db.orders")
        with pytest.raises(InputError, match="location of the old"):
            catalog.swap("db.orders", base, base)

    def test_no_swap_among_threads_is_lost(self, catalog: Catalog) -> None:
        """Each acknowledged swap builds on the one before it."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "0")

        def work(worker: int) -> int:
            done = 0
            while done < _SWAPS:
                base = catalog.load("db.orders")
                following = int(self.label(base).split("-")[0]) + 1
                outcome = self.swap(catalog, "db.orders", base, f"{following}-{worker}-{done}")
                done += isinstance(outcome, Swapped)
            return done

        with ThreadPoolExecutor(_WORKERS) as pool:
            acknowledged = sum(pool.map(work, range(_WORKERS)))
        assert int(self.at(catalog, "db.orders").split("-")[0]) == acknowledged == _WORKERS * _SWAPS

    def test_one_of_many_swaps_from_one_location_wins(self, catalog: Catalog) -> None:
        """And the pointer is the winner's."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "base")
        base = catalog.load("db.orders")
        with ThreadPoolExecutor(_WORKERS) as pool:
            outcomes = list(pool.map(lambda n: self.swap(catalog, "db.orders", base, str(n)), range(_WORKERS)))
        (winner,) = (number for number, outcome in enumerate(outcomes) if isinstance(outcome, Swapped))
        assert outcomes.count(Stale()) == _WORKERS - 1
        assert self.at(catalog, "db.orders") == str(winner)

    def test_one_of_many_creates_wins(self, catalog: Catalog) -> None:
        """And the pointer is the winner's."""
        catalog.create_namespace("db")

        def attempt(worker: int) -> bool:
            try:
                self.create(catalog, "db.orders", str(worker))
            except AlreadyExists:
                return False
            return True

        with ThreadPoolExecutor(_WORKERS) as pool:
            won = list(pool.map(attempt, range(_WORKERS)))
        assert sum(won) == 1
        assert self.at(catalog, "db.orders") == str(won.index(True))

    def test_a_written_table_is_registered(self, catalog: Catalog) -> None:
        """Under a name that is free."""
        catalog.create_namespace("db")
        location = self.place(catalog, "db.orders", "one")
        catalog.register("db.orders", location)
        assert self.at(catalog, "db.orders") == self.label(location) == "one"
        with pytest.raises(AlreadyExists):
            catalog.register("db.orders", self.place(catalog, "db.orders", "two"))
        with pytest.raises(NoSuchNamespace):
            catalog.register("nowhere.orders", location)

    def test_a_dropped_table_is_gone(self, catalog: Catalog) -> None:
        """Its name is free again, and its last metadata can be found."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        self.swap(catalog, "db.orders", catalog.load("db.orders"), "two")
        kept = catalog.drop("db.orders")
        assert kept is not None
        assert self.label(kept) == "two"
        assert catalog.list_tables("db") == ()
        with pytest.raises(NoSuchTable):
            catalog.load("db.orders")
        self.create(catalog, "db.orders", "three")
        assert self.at(catalog, "db.orders") == "three"

    def test_a_table_made_again_under_a_name_is_another_one(self, catalog: Catalog) -> None:
        """A pointer of the dropped one is stale, after as many swaps as that had; it replaced the new table once."""
        catalog.create_namespace("db")
        late: list[str] = []
        for life in ("old", "new"):
            self.create(catalog, "db.orders", f"{life} 1")
            late.append(catalog.load("db.orders"))
            self.swap(catalog, "db.orders", catalog.load("db.orders"), f"{life} 2")
            late.append(catalog.load("db.orders"))
            if life == "old":
                catalog.drop("db.orders")
        for number, pointer in enumerate(late[:-1]):
            assert self.swap(catalog, "db.orders", pointer, f"late {number}") == Stale()
        assert self.at(catalog, "db.orders") == "new 2"

    def test_a_dropped_table_can_be_registered_again(self, catalog: Catalog) -> None:
        """From where its last metadata is."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        kept = catalog.drop("db.orders")
        assert kept is not None
        catalog.register("db.orders", kept)
        assert self.at(catalog, "db.orders") == "one"

    def test_a_renamed_table_keeps_its_pointer(self, catalog: Catalog) -> None:
        """Also into another namespace; a catalog that cannot do it says so and changes nothing."""
        catalog.create_namespace("db")
        catalog.create_namespace("archive")
        self.create(catalog, "db.orders", "one")
        if not self.renames:
            with pytest.raises(UnsupportedError, match="rename"):
                catalog.rename("db.orders", "archive.orders_2025")
            assert self.at(catalog, "db.orders") == "one"
            return
        catalog.rename("db.orders", "archive.orders_2025")
        assert self.at(catalog, "archive.orders_2025") == "one"
        assert catalog.list_tables("db") == ()

    def test_a_rename_never_replaces_a_table(self, catalog: Catalog) -> None:
        """Nor goes to a namespace that is not there."""
        catalog.create_namespace("db")
        self.create(catalog, "db.a", "one")
        self.create(catalog, "db.b", "two")
        with pytest.raises(AlreadyExists if self.renames else UnsupportedError):
            catalog.rename("db.a", "db.b")
        with pytest.raises(NoSuchNamespace if self.renames else UnsupportedError):
            catalog.rename("db.a", "nowhere.a")
        assert (self.at(catalog, "db.a"), self.at(catalog, "db.b")) == ("one", "two")

    def test_tables_are_listed_by_namespace(self, catalog: Catalog) -> None:
        """In order, and without those of namespaces below."""
        for namespace in ("db", "db.inner", "db2"):
            catalog.create_namespace(namespace)
        for name in ("db.b", "db.a", "db.inner.c", "db2.d"):
            self.create(catalog, name, "one")
        assert catalog.list_tables("db") == (("db", "a"), ("db", "b"))
        assert catalog.list_tables(("db", "inner")) == (("db", "inner", "c"),)
        with pytest.raises(NoSuchNamespace):
            catalog.list_tables("d")

    def test_namespaces_are_listed_by_level(self, catalog: Catalog) -> None:
        """A namespace that holds one exists too."""
        for namespace in ("b", "a.x.deep", "a.y", "a2"):
            catalog.create_namespace(namespace)
        assert catalog.list_namespaces() == (("a",), ("a2",), ("b",))
        assert catalog.list_namespaces("a") == (("a", "x"), ("a", "y"))
        assert catalog.list_namespaces(("a", "x")) == (("a", "x", "deep"),)
        assert catalog.list_namespaces("b") == ()
        with pytest.raises(NoSuchNamespace):
            catalog.list_namespaces("c")

    def test_namespaces_exist_once_created(self, catalog: Catalog) -> None:
        """By their exact names."""
        catalog.create_namespace("a_b.c%")
        assert catalog.namespace_exists("a_b")
        assert catalog.namespace_exists("a_b.c%")
        for other in ("axb", "A_B", "a_b.c", "a_b.c%.d", "a"):
            assert not catalog.namespace_exists(other)
        for taken in ("a_b.c%", "a_b"):
            with pytest.raises(AlreadyExists):
                catalog.create_namespace(taken)

    def test_only_an_empty_namespace_is_dropped(self, catalog: Catalog) -> None:
        """One with tables or namespaces inside stays."""
        catalog.create_namespace("db")
        catalog.create_namespace("outer.inner")
        self.create(catalog, "db.orders", "one")
        for full in ("db", "outer"):
            with pytest.raises(InputError, match="not empty"):
                catalog.drop_namespace(full)
        catalog.drop("db.orders")
        if not self.forgets_files:
            with pytest.raises(InputError, match="files that no table owns"):
                catalog.drop_namespace("db")
            return
        catalog.drop_namespace("db")
        assert not catalog.namespace_exists("db")
        with pytest.raises(NoSuchNamespace):
            catalog.drop_namespace("db")

    def test_namespaces_have_properties(self, catalog: Catalog) -> None:
        """Set, replaced and removed in one step; a catalog that has no place for them says so."""
        if not self.keeps_properties:
            with pytest.raises(UnsupportedError, match="properties"):
                catalog.create_namespace("db", {"owner": "ann"})
            catalog.create_namespace("db")
            with pytest.raises(UnsupportedError, match="properties"):
                catalog.set_namespace_properties("db", {"owner": "ann"})
            return
        catalog.create_namespace("db", {"owner": "ann", "note": "'%s' :x ?"})
        catalog.create_namespace("db2")
        assert catalog.namespace_properties("db") == {"owner": "ann", "note": "'%s' :x ?"}
        catalog.set_namespace_properties("db", {"owner": "bob", "team": "雪"}, ["note", "never"])
        assert catalog.namespace_properties("db") == {"owner": "bob", "team": "雪"}
        assert catalog.namespace_properties("db2") == {}

    def test_a_namespace_without_properties_still_exists(self, catalog: Catalog) -> None:
        """Also one that is there only for what it holds."""
        if not self.keeps_properties:
            catalog.create_namespace("a")
            assert set(catalog.namespace_properties("a")) <= {"location"}
            return
        catalog.create_namespace("a.b", {"owner": "ann"})
        catalog.set_namespace_properties("a.b", {}, ["owner"])
        catalog.set_namespace_properties("a", {"owner": "bob"})
        assert catalog.namespace_properties("a.b") == {}
        assert catalog.namespace_properties("a") == {"owner": "bob"}
        catalog.drop_namespace("a.b")
        assert catalog.namespace_exists("a")

    @pytest.mark.parametrize("updates", [{"a": 1}, {1: "a"}, {"": "a"}, {"exists": "no"}, {"gone": "x"}])
    def test_properties_that_cannot_be_kept_are_refused(self, catalog: Catalog, updates: dict[str, str]) -> None:
        """Before any of them is kept."""
        catalog.create_namespace("db")
        with pytest.raises((InputError, UnsupportedError)):
            catalog.set_namespace_properties("db", {"fine": "x", **updates}, ["gone"])
        assert "fine" not in catalog.namespace_properties("db")

    def test_properties_need_their_namespace(self, catalog: Catalog) -> None:
        """A misspelt one is not made."""
        with pytest.raises(NoSuchNamespace):
            catalog.namespace_properties("db")
        with pytest.raises(NoSuchNamespace):
            catalog.set_namespace_properties("db", {"a": "b"})

    def test_names_of_any_script_are_kept(self, catalog: Catalog) -> None:
        """Quotes, spaces, percent signs and a dot in a table's name are only characters."""
        catalog.create_namespace("Größe")
        names = (("Größe", "雪"), ("Größe", 'o\'clock "x"'), ("Größe", "100% :a ?"), ("Größe", "v1.0"))
        for name in names:
            self.create(catalog, name, "one")
        assert catalog.list_tables("Größe") == tuple(sorted(names))
        for name in names:
            assert isinstance(self.swap(catalog, name, catalog.load(name), "new '%s' :x"), Swapped)
            assert self.at(catalog, name) == "new '%s' :x"

    def test_names_differ_by_case(self, catalog: Catalog) -> None:
        """As they do in every Iceberg catalog."""
        catalog.create_namespace("db")
        self.create(catalog, "db.T", "one")
        self.create(catalog, "db.t", "two")
        assert (self.at(catalog, "db.T"), self.at(catalog, "db.t")) == ("one", "two")

    @pytest.mark.parametrize(
        "name", ["orders", "", ".", "db.", ".orders", "db..orders", "db.a\nb", "db.\ud800", ("a.b", "t"), ()]
    )
    def test_a_name_that_is_none_is_refused(self, catalog: Catalog, name: str | tuple[str, ...]) -> None:
        """Before the catalog is asked anything."""
        verbs: tuple[Callable[[], object], ...] = (
            lambda: catalog.load(name),
            lambda: catalog.create(name, "file:///wh/one"),
            lambda: catalog.register(name, "file:///wh/one"),
            lambda: catalog.swap(name, "file:///wh/one", "file:///wh/two"),
            lambda: catalog.drop(name),
            lambda: catalog.default_location(name),
        )
        for verb in verbs:
            with pytest.raises(InputError):
                verb()

    @pytest.mark.parametrize("table", [".", ".."])
    def test_a_table_that_no_folder_can_be_called_is_not_made(self, catalog: Catalog, table: str) -> None:
        """Nor does one get such a name; those that other programs made are loaded and dropped."""
        catalog.create_namespace("db")
        self.create(catalog, "db.orders", "one")
        for verb in (catalog.create, catalog.register):
            with pytest.raises(InputError):
                verb(("db", table), self.place(catalog, "db.orders", "two"))
        with pytest.raises((InputError, UnsupportedError)):
            catalog.rename("db.orders", ("db", table))
        with pytest.raises(NoSuchTable):
            catalog.load(("db", table))

    def test_a_default_location_is_a_folder_for_each_part(self, catalog: Catalog) -> None:
        """Under the warehouse, for any name."""
        catalog.create_namespace("lake.db")
        assert catalog.default_location("lake.db.orders") == f"{catalog.warehouse}/lake/db/orders"
        assert catalog.default_location(("lake", "db", "../x")) == f"{catalog.warehouse}/lake/db/..%2Fx"
        assert catalog.default_location(("lake", "db", "..")) == f"{catalog.warehouse}/lake/db/%2E%2E"
