"""What every catalog must do. To run it, inherit from ``CatalogSuite`` and give the fixture ``catalog``."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from icefloe.catalogs.catalog import Catalog, Stale, Swapped
from icefloe.errors import AlreadyExists, InputError, NoSuchNamespace, NoSuchTable

ONE, TWO, THREE = (f"file:///wh/db/orders/metadata/{number}.metadata.json" for number in (1, 2, 3))
_WORKERS, _SWAPS = 8, 25


class CatalogSuite:
    """Inherit, and override the fixture; the catalog must be empty."""

    @pytest.fixture
    def catalog(self) -> Catalog:
        """The implementation under test."""
        raise pytest.UsageError("a CatalogSuite needs the fixture 'catalog'")

    def test_a_table_is_created_and_loaded(self, catalog: Catalog) -> None:
        """By dotted text or by tuple."""
        catalog.create_namespace("db")
        catalog.create("db.orders", ONE)
        assert catalog.load("db.orders") == ONE
        assert catalog.load(("db", "orders")) == ONE

    def test_a_table_needs_its_namespace(self, catalog: Catalog) -> None:
        """A misspelt namespace is not made."""
        catalog.create_namespace("sales")
        with pytest.raises(NoSuchNamespace, match="similar names: sales"):
            catalog.create("sale.orders", ONE)
        assert catalog.list_namespaces() == (("sales",),)

    def test_a_name_is_taken_once(self, catalog: Catalog) -> None:
        """The first table stays."""
        catalog.create_namespace("db")
        catalog.create("db.orders", ONE)
        with pytest.raises(AlreadyExists, match=r"db\.orders"):
            catalog.create("db.orders", TWO)
        assert catalog.load("db.orders") == ONE

    def test_a_missing_table_comes_with_suggestions(self, catalog: Catalog) -> None:
        """Every verb on tables raises ``NoSuchTable``."""
        catalog.create_namespace("db")
        catalog.create("db.orders", ONE)
        verbs: tuple[Callable[[], object], ...] = (
            lambda: catalog.load("db.order"),
            lambda: catalog.swap("db.order", ONE, TWO),
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
        catalog.create("db.orders", ONE)
        assert catalog.swap("db.orders", expected=ONE, new=TWO) == Swapped()
        assert catalog.load("db.orders") == TWO
        assert catalog.swap("db.orders", expected=TWO, new=THREE) == Swapped()
        assert catalog.load("db.orders") == THREE

    def test_a_swap_from_elsewhere_is_stale_and_changes_nothing(self, catalog: Catalog) -> None:
        """The one who comes second learns it."""
        catalog.create_namespace("db")
        catalog.create("db.orders", ONE)
        catalog.swap("db.orders", expected=ONE, new=TWO)
        assert catalog.swap("db.orders", expected=ONE, new=THREE) == Stale()
        assert catalog.load("db.orders") == TWO

    def test_a_swap_touches_one_table(self, catalog: Catalog) -> None:
        """Not its neighbours, even when their pointers are equal."""
        catalog.create_namespace("db")
        catalog.create_namespace("db2")
        for name in ("db.orders", "db.other", "db2.orders"):
            catalog.create(name, ONE)
        assert catalog.swap("db.orders", ONE, TWO) == Swapped()
        assert [catalog.load(name) for name in ("db.orders", "db.other", "db2.orders")] == [TWO, ONE, ONE]

    def test_a_swap_to_the_same_location_is_refused(self, catalog: Catalog) -> None:
        """New metadata has a new name, else nobody can tell who won."""
        catalog.create_namespace("db")
        catalog.create("db.orders", ONE)
        with pytest.raises(InputError, match="location of the old"):
            catalog.swap("db.orders", ONE, ONE)

    def test_no_swap_among_threads_is_lost(self, catalog: Catalog) -> None:
        """Each acknowledged swap builds on the one before it."""
        catalog.create_namespace("db")
        catalog.create("db.orders", "0")

        def work(worker: int) -> int:
            done = stale = 0
            while done < _SWAPS:
                base = catalog.load("db.orders")
                outcome = catalog.swap("db.orders", base, f"{int(base.split('-')[0]) + 1}-{worker}")
                done, stale = done + (outcome == Swapped()), stale + (outcome == Stale())
            return done

        with ThreadPoolExecutor(_WORKERS) as pool:
            acknowledged = sum(pool.map(work, range(_WORKERS)))
        assert int(catalog.load("db.orders").split("-")[0]) == acknowledged == _WORKERS * _SWAPS

    def test_one_of_many_creates_wins(self, catalog: Catalog) -> None:
        """And the pointer is the winner's."""
        catalog.create_namespace("db")

        def attempt(worker: int) -> bool:
            try:
                catalog.create("db.orders", str(worker))
            except AlreadyExists:
                return False
            return True

        with ThreadPoolExecutor(_WORKERS) as pool:
            won = list(pool.map(attempt, range(_WORKERS)))
        assert sum(won) == 1
        assert catalog.load("db.orders") == str(won.index(True))

    def test_a_dropped_table_is_gone(self, catalog: Catalog) -> None:
        """Its name is free again."""
        catalog.create_namespace("db")
        catalog.create("db.orders", ONE)
        catalog.drop("db.orders")
        with pytest.raises(NoSuchTable):
            catalog.load("db.orders")
        catalog.create("db.orders", TWO)
        assert catalog.load("db.orders") == TWO

    def test_a_renamed_table_keeps_its_pointer(self, catalog: Catalog) -> None:
        """Also into another namespace."""
        catalog.create_namespace("db")
        catalog.create_namespace("archive")
        catalog.create("db.orders", ONE)
        catalog.rename("db.orders", "archive.orders_2025")
        assert catalog.load("archive.orders_2025") == ONE
        assert catalog.list_tables("db") == ()

    def test_a_rename_never_replaces_a_table(self, catalog: Catalog) -> None:
        """Nor goes to a namespace that is not there."""
        catalog.create_namespace("db")
        catalog.create("db.a", ONE)
        catalog.create("db.b", TWO)
        with pytest.raises(AlreadyExists):
            catalog.rename("db.a", "db.b")
        with pytest.raises(NoSuchNamespace):
            catalog.rename("db.a", "nowhere.a")
        assert (catalog.load("db.a"), catalog.load("db.b")) == (ONE, TWO)

    def test_tables_are_listed_by_namespace(self, catalog: Catalog) -> None:
        """In order, and without those of namespaces below."""
        for namespace in ("db", "db.inner", "db2"):
            catalog.create_namespace(namespace)
        for name in ("db.b", "db.a", "db.inner.c", "db2.d"):
            catalog.create(name, ONE)
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
        catalog.create("db.orders", ONE)
        for full in ("db", "outer"):
            with pytest.raises(InputError, match="not empty"):
                catalog.drop_namespace(full)
        catalog.drop("db.orders")
        catalog.drop_namespace("db")
        assert not catalog.namespace_exists("db")
        with pytest.raises(NoSuchNamespace):
            catalog.drop_namespace("db")

    def test_names_of_any_script_are_kept(self, catalog: Catalog) -> None:
        """Quotes, spaces, percent signs and a dot in a table's name are only characters."""
        catalog.create_namespace("Größe")
        names = (("Größe", "雪"), ("Größe", 'o\'clock "x"'), ("Größe", "100% :a ?"), ("Größe", "v1.0"))
        for name in names:
            catalog.create(name, f"loc-{name[1]}")
        assert catalog.list_tables("Größe") == tuple(sorted(names))
        for name in names:
            assert catalog.load(name) == f"loc-{name[1]}"
            assert catalog.swap(name, f"loc-{name[1]}", "new '%s' :x ?") == Swapped()
            assert catalog.load(name) == "new '%s' :x ?"

    def test_names_differ_by_case(self, catalog: Catalog) -> None:
        """As they do in every Iceberg catalog."""
        catalog.create_namespace("db")
        catalog.create("db.T", ONE)
        catalog.create("db.t", TWO)
        assert (catalog.load("db.T"), catalog.load("db.t")) == (ONE, TWO)

    @pytest.mark.parametrize("name", ["orders", "", ".", "db.", ".orders", "db..orders", "db.a\nb", ("a.b", "t"), ()])
    def test_a_name_that_is_none_is_refused(self, catalog: Catalog, name: str | tuple[str, ...]) -> None:
        """Before the catalog is asked anything."""
        verbs: tuple[Callable[[], object], ...] = (
            lambda: catalog.load(name),
            lambda: catalog.create(name, ONE),
            lambda: catalog.swap(name, ONE, TWO),
            lambda: catalog.drop(name),
            lambda: catalog.default_location(name),
        )
        for verb in verbs:
            with pytest.raises(InputError):
                verb()

    def test_a_default_location_is_a_folder_for_each_part(self, catalog: Catalog) -> None:
        """Under the warehouse, whatever the name holds."""
        catalog.create_namespace("lake.db")
        assert catalog.default_location("lake.db.orders") == f"{catalog.warehouse}/lake/db/orders"
        assert catalog.default_location(("lake", "db", "../x")) == f"{catalog.warehouse}/lake/db/..%2Fx"
        assert catalog.default_location(("lake", "db", "..")) == f"{catalog.warehouse}/lake/db/%2E%2E"
