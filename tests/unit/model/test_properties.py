"""Table properties: what may be set, and what becomes of values that other programs have stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icefloe.errors import InputError
from icefloe.formats.avro import writer as avro_writer
from icefloe.formats.orc import writer as orc_writer
from icefloe.formats.write import metrics
from icefloe.model.metadata import properties
from icefloe.model.metadata.properties import METRICS, REGISTRY, Property, PropertyRegistry, check_settable, whole


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("commit.retry.num-retries", "-1", "a whole number from 0"),
        ("commit.retry.num-retries", "many", "a whole number from 0"),
        ("commit.retry.min-wait-ms", "1s", "a whole number from 0"),
        ("commit.retry.max-wait-ms", "99999999999", "a whole number from 0"),
        ("commit.manifest.target-size-bytes", "0", "a whole number of 1 or more"),
        ("write.target-file-size-bytes", "1_000", "a whole number of 1 or more"),
        ("write.metadata.delete-after-commit.enabled", "yes", "true or false"),
        ("write.metadata.compression-codec", "snappy", "none or gzip"),
        ("write.delete.isolation-level", "none", "serializable or snapshot"),
        ("write.delete.mode", "fast", "copy-on-write or merge-on-read"),
        ("write.format.default", "csv", "parquet, orc or avro"),
        ("write.delete.parquet.compression-codec", "rar", "brotli, gzip, lz4, snappy, uncompressed or zstd"),
        ("write.metadata.metrics.column.a.b", "some", "none, counts, truncate"),
        ("write.parquet.bloom-filter-enabled.column.a", "1", "true or false"),
        ("write.parquet.bloom-filter-fpp.column.a", "2", "a number between 0 and 1"),
        ("write.orc.bloom.filter.fpp", "nan", "a number between 0 and 1"),
    ],
)
def test_a_property_that_makes_no_sense_is_refused_when_it_is_set(name: str, value: str, allowed: str) -> None:
    """They were stored, and every later commit failed, also the one that would have fixed it."""
    with pytest.raises(InputError, match=rf"property {name}: expected {allowed}.*, got '{value}'"):
        check_settable({"owner": "me", name: value})


def test_properties_that_make_sense_or_mean_nothing_here_are_set() -> None:
    check_settable(
        {
            "owner": "",
            "commit.retry.num-retries": "0",
            "write.metadata.delete-after-commit.enabled": "TRUE",
            "write.metadata.compression-codec": "GZIP",
            "write.delete.mode": "Merge-On-Read",
            "write.parquet.compression-level": "-3",
            "write.metadata.previous-versions-max": "-1",
            "write.metadata.metrics.default": "Truncate(08)",
            "write.spark.advisory-partition-size-bytes": "who knows",
        }
    )


@pytest.mark.parametrize(("value", "hint"), [(1000, "write '1000'"), (True, "write 'true'"), (None, "in remove")])
def test_a_property_that_is_not_text_is_refused_and_the_text_is_shown(value: object, hint: str) -> None:
    with pytest.raises(InputError, match=rf"property 'size': expected text, got {value}; .*{hint}"):
        check_settable({"size": value})  # type: ignore[dict-item]


def test_what_every_commit_needs_falls_back_to_its_default(caplog: pytest.LogCaptureFixture) -> None:
    lenient = Property("commit.retries", 20, rule=whole(0, 9), lenient=True)
    assert [lenient.of({"commit.retries": text}) for text in ("7", "-1", "many", "10", "")] == [7, 20, 20, 20, 20]
    assert "commit.retries: expected a whole number from 0 to 9, got 'many'; taken for 20" in caplog.text


def test_nothing_that_a_commit_reads_can_stop_it() -> None:
    needed = [each for each in vars(properties).values() if isinstance(each, Property) and each.name[:7] == "commit."]
    needed += [properties.DELETE_AFTER_COMMIT, properties.METADATA_COMPRESSION, properties.PREVIOUS_VERSIONS_MAX]
    assert len(needed) > 10
    for each in needed:
        assert each.of({each.name: "\N{SNOWMAN}"}) == each.default


def test_what_may_be_set_is_what_the_writers_know() -> None:
    for setting, known in (
        (properties.AVRO_COMPRESSION, avro_writer.CODECS),
        (properties.ORC_COMPRESSION, orc_writer.CODECS),
    ):
        for codec in known:
            assert setting.problem(codec) is None
            assert codec in setting.rule.allowed
    for mode in ("none", "counts", "full", "truncate(1)", " FULL ", "truncate(999999999)"):
        metrics.parse_mode(mode, "mode")
        assert METRICS.accepts(mode)
    for mode in ("", "truncate(0)", "truncate(000)", "truncate", "truncate(9999999999)"):
        with pytest.raises(InputError):
            metrics.parse_mode(mode, "mode")
        assert not METRICS.accepts(mode)


def test_each_property_is_registered_once_under_its_key() -> None:
    """The last of two with one key was found, by the order of the module. A variant has another default only."""
    constants = [value for value in vars(properties).values() if isinstance(value, Property)]
    registered = [REGISTRY.find(constant.name) for constant in constants]
    variants = [constant for constant, found in zip(constants, registered, strict=True) if found is not constant]
    assert len(set(REGISTRY.names)) == len(REGISTRY.names)
    assert {variant.name for variant in variants} == {
        "commit.manifest.target-size-bytes",
        "commit.manifest.min-count-to-merge",
    }
    for variant in variants:
        found = REGISTRY.find(variant.name)
        assert found is not None
        assert replace(found, default=variant.default) == variant


def test_every_registered_property_has_a_name_in_the_module() -> None:
    """Two constants of one name would leave the first without one, so that nobody could read it."""
    constants = [value for value in vars(properties).values() if isinstance(value, Property | str)]
    assert set(REGISTRY.names) <= {value if isinstance(value, str) else value.name for value in constants}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("write.a", "write.a"),
        ("write.a.column.", "write.a.column."),
        ("write.a.column.", "write.a.column.x"),
        ("write.a.column.x", "write.a.column."),
        ("write.a.column.", "write.a."),
        ("write.a.", "write.a.column."),
        ("write.parquet.a", "write.delete.parquet.a"),
        ("write.b", "write.delete.avro.a"),
    ],
)
def test_two_properties_cannot_claim_one_key(first: str, second: str) -> None:
    registry = PropertyRegistry()
    for number, name in enumerate((first, second)):
        add = registry.add_prefix if name.endswith(".") else registry.add
        if number == 0:
            add(Property(name, 1))
        else:
            with pytest.raises(InputError, match=f"property {name}: "):
                add(Property(name, 1))
    assert registry.names == (first,)
