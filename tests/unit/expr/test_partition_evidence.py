"""What partition values say about their source: never more than is true of every row, and as much as can be said."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest
from filter_cases import COLUMNS, LITERALS, SCHEMA, USABLE, VALUES, partition_value, result_type, truth
from hypothesis import given
from hypothesis import strategies as st

from icefloe.expr.filter.bind import bind
from icefloe.expr.filter.nodes import Op, Predicate
from icefloe.expr.prune.stats_eval import Match, evaluate
from icefloe.expr.text.filter_parser import parse_filter
from icefloe.model.entries import entries, partition_key
from icefloe.model.partition.spec import PartitionField
from icefloe.model.schema.types import DATE

NONE, SOME, ALL = Match.NONE, Match.SOME, Match.ALL
UNITS = ("year", "month", "day", "hour")
DERIVED = [field for field in USABLE if field.transform != "identity"]
ORDERED = [field for field in DERIVED if not field.transform.startswith("bucket")]
# More values than those of the filters: around the ends of the types, and several units of each time.
MANY: dict[str, st.SearchStrategy[Any]] = VALUES | {
    name: VALUES[name] | st.integers(-40, 40) | st.integers(-(2**bits), 20 - 2**bits)
    | st.integers(2**bits - 20, 2**bits - 1)
    for name, bits in (("i", 31), ("l", 63))
}  # fmt: skip


def name_of(field: PartitionField) -> str:
    return f"{field.transform}({COLUMNS[field.source_id]})"


@st.composite
def predicates(draw: st.DrawFn, name: str) -> Predicate:
    literals = MANY[name] | LITERALS[name]
    few = st.lists(literals, min_size=1, max_size=4).map(tuple)
    one = st.tuples(literals)
    choices = [
        st.builds(Predicate, st.sampled_from([Op.IN, Op.NOT_IN]), st.just(name), few),
        st.builds(Predicate, st.sampled_from([Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ, Op.NE]), st.just(name), one),
        st.builds(Predicate, st.sampled_from([Op.IS_NULL, Op.NOT_NULL]), st.just(name)),
    ]
    if name == "s":
        prefixes = st.tuples(VALUES["s"])
        choices.append(
            st.builds(Predicate, st.sampled_from([Op.STARTS_WITH, Op.NOT_STARTS_WITH]), st.just(name), prefixes)
        )
    return draw(st.one_of(choices))


def as_old_writers_did(field: PartitionField, value: Any) -> Any:
    """Units before 1970 rounded towards it, as in the first releases of other programs."""
    if field.transform not in UNITS or value is None:
        return value
    if field.transform == "day":
        is_copy = SCHEMA.by_id[field.source_id].type == DATE
        return value if is_copy or value >= dt.date(1970, 1, 1) else value + dt.timedelta(days=1)
    return value + 1 if value < 0 else value


def file_of(field: PartitionField, values: list[Any]) -> pa.Table:
    """One entry that knows only the range and the nulls of partition values."""
    key, known = partition_key(field.field_id), [value for value in values if value is not None]
    row = {
        "record_count": len(values),
        f"value_count:{key}": len(values),
        f"null_value_count:{key}": len(values) - len(known),
        f"lower_bound:{key}": min(known, default=None),
        f"upper_bound:{key}": max(known, default=None),
    }
    return entries([row], {key: result_type(field)})


@pytest.mark.slow
@pytest.mark.parametrize("field", DERIVED, ids=name_of)
@given(data=st.data(), old=st.booleans())
def test_a_range_of_partition_values_says_only_what_is_true_of_every_row(
    field: PartitionField, data: st.DataObject, old: bool
) -> None:
    name = COLUMNS[field.source_id]
    values = data.draw(st.lists(st.none() | MANY[name] | MANY[name], min_size=1, max_size=5))
    results = [partition_value(field, value) for value in values]
    if old:
        results = [as_old_writers_did(field, result) for result in results]
    expr = data.draw(predicates(name))
    answer = evaluate(bind(expr, SCHEMA), file_of(field, results), (field,))[0].as_py()
    matching = sum(truth(expr, {name: value}) is True for value in values)
    assert matching == 0 or answer != NONE
    assert matching == len(values) or answer != ALL


LATE = [dt.datetime(2024, month, day, hour) for month in (1, 2, 3) for day in (1, 2) for hour in (0, 1)]
LATE += [dt.datetime(2025, 2, 1), dt.datetime(2025, 2, 1, 0, 59, 59, 999_999)]
# Without what is said with caution: times until 1970, and the ends of the types.
PLAIN: dict[str, st.SearchStrategy[Any]] = VALUES | {
    "i": st.integers(-40, 40),
    "l": st.integers(-40, 40),
    "t": st.sampled_from(LATE),
    "z": st.sampled_from([moment.replace(tzinfo=dt.UTC) for moment in LATE]),
    "d": st.sampled_from([moment.date() for moment in LATE]),
}


@pytest.mark.slow
@pytest.mark.parametrize("field", DERIVED, ids=name_of)
@given(data=st.data())
def test_a_file_is_left_out_exactly_if_its_partition_is_not_that_of_the_literal(
    field: PartitionField, data: st.DataObject
) -> None:
    name = COLUMNS[field.source_id]
    value, *literals = data.draw(st.lists(PLAIN[name], min_size=2, max_size=4))
    own, others = partition_value(field, value), [partition_value(field, literal) for literal in literals]
    table = file_of(field, [own])
    equal = bind(Predicate(Op.EQ, name, (literals[0],)), SCHEMA)
    assert (evaluate(equal, table, (field,))[0].as_py() == NONE) == (own != others[0])
    among = bind(Predicate(Op.IN, name, tuple(literals)), SCHEMA)
    assert (evaluate(among, table, (field,))[0].as_py() == NONE) == (own not in others)


@pytest.mark.slow
@pytest.mark.parametrize("field", ORDERED, ids=name_of)
@given(data=st.data())
def test_a_transform_that_keeps_order_leaves_out_files_on_the_other_side(
    field: PartitionField, data: st.DataObject
) -> None:
    name = COLUMNS[field.source_id]
    value, literal = data.draw(PLAIN[name]), data.draw(PLAIN[name])
    own, other = partition_value(field, value), partition_value(field, literal)

    def answer(op: Op) -> Match:
        return Match(
            evaluate(bind(Predicate(op, name, (literal,)), SCHEMA), file_of(field, [own]), (field,))[0].as_py()
        )

    assert (answer(Op.GE) == NONE) == (own < other)
    assert (answer(Op.LT) == ALL) == (own < other)
    if own > other:
        assert (answer(Op.LE), answer(Op.LT), answer(Op.GT), answer(Op.GE)) == (NONE, NONE, ALL, ALL)


def judge(text: str, column: str, transform: str, lowest: Any, highest: Any) -> Match:
    """The answer for one entry without nulls of which only the range of a partition field is known."""
    field = PartitionField(source_id=SCHEMA.field(column).id, field_id=1000, name="p", transform=transform)
    row = {
        "record_count": 10, "null_value_count:p1000": 0, "lower_bound:p1000": lowest, "upper_bound:p1000": highest,
    }  # fmt: skip
    table = entries([row], {partition_key(1000): result_type(field)})
    return Match(evaluate(bind(parse_filter(text), SCHEMA), table, (field,))[0].as_py())


NOVEMBER = 12 * 56 + 10  # of 2026


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t < '2026-11-01T00:00:00'", NONE), ("t <= '2026-11-01T00:00:00'", SOME), ("t >= '2026-11-01T00:00:00'", ALL),
        ("t > '2026-12-31T23:59:59.999999'", NONE), ("t >= '2026-12-31T23:59:59.999999'", SOME),
        ("t < '2027-01-01T00:00:00'", ALL), ("t = '2026-12-01T00:00:00'", SOME), ("t = '2027-01-01T00:00:00'", NONE),
        ("t IN ('2026-10-31T23:59:59', '2027-01-01T00:00:00')", NONE), ("t != '2026-10-31T23:59:59'", ALL),
    ],
)  # fmt: skip
def test_months_bound_their_timestamps(text: str, expected: Match) -> None:
    assert judge(text, "t", "month", NOVEMBER, NOVEMBER + 1) == expected


def test_years_bound_dates_and_hours_bound_timestamps() -> None:
    assert judge("d > '2024-12-31'", "d", "year", 54, 54) == NONE
    assert judge("d >= '2024-12-31'", "d", "year", 54, 54) == SOME
    assert judge("d >= '2024-01-01'", "d", "year", 54, 54) == ALL
    assert judge("d < '2024-01-01'", "d", "year", 54, 54) == NONE
    hour = 20_772 * 24 + 9
    assert judge("t >= '2026-11-15T10:00:00'", "t", "hour", hour, hour) == NONE
    assert judge("t < '2026-11-15T10:00:00'", "t", "hour", hour, hour) == ALL
    assert judge("z < '2026-11-15T09:00:00Z'", "z", "hour", hour, hour) == NONE


@pytest.mark.parametrize(("column", "transform"), [("t", "year"), ("t", "month"), ("d", "month"), ("z", "hour")])
def test_units_outside_the_range_of_the_type_are_unknown(column: str, transform: str) -> None:
    text = f"{column} < '2024-03-01{'T00:00:00Z' if column == 'z' else ''}'"
    for far in (2**31 - 1, -(2**31)):
        assert judge(text, column, transform, far, far) in ((SOME,) if transform != "hour" else (NONE, ALL))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s = 'ab'", SOME), ("s = 'abx'", SOME), ("s = 'ac'", NONE), ("s = 'a'", NONE), ("s IN ('aax', 'acx')", NONE),
        ("s < 'ab'", NONE), ("s <= 'ab'", SOME), ("s > 'abzz'", SOME), ("s >= 'ac'", NONE), ("s < 'ac'", ALL),
        ("s >= 'ab'", ALL), ("s > 'ab'", SOME), ("s != 'ac'", ALL), ("s LIKE 'a%'", ALL), ("s LIKE 'ab%'", ALL),
        ("s LIKE 'abc%'", SOME), ("s LIKE 'acd%'", NONE), ("s LIKE 'b%'", NONE), ("s NOT LIKE 'ab%'", NONE),
        ("s NOT LIKE 'acd%'", ALL), ("s NOT LIKE 'abc%'", SOME),
    ],
)  # fmt: skip
def test_the_beginning_of_texts_is_evidence(text: str, expected: Match) -> None:
    assert judge(text, "s", "truncate[2]", "ab", "ab") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s = 'ab'", ALL), ("s > 'ab'", NONE), ("s = 'abc'", NONE), ("s LIKE 'abc%'", NONE), ("s LIKE 'ab%'", ALL)],
)
def test_a_text_shorter_than_the_width_is_the_whole_text(text: str, expected: Match) -> None:
    assert judge(text, "s", "truncate[3]", "ab", "ab") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < -10", NONE), ("i < -9", SOME), ("i > 9", NONE), ("i > 8", SOME), ("i >= -10", ALL), ("i <= 9", ALL),
        ("i = 10", NONE), ("i = 9", SOME), ("i IN (-11, 10)", NONE),
    ],
)  # fmt: skip
def test_cut_numbers_bound_what_they_were(text: str, expected: Match) -> None:
    assert judge(text, "i", "truncate[10]", -10, 0) == expected


def test_numbers_that_came_out_at_the_other_end_are_no_evidence() -> None:
    wrapped = 2**32 - 2147483650  # what Java makes of -2^31
    assert judge("i < 0", "i", "truncate[10]", wrapped, wrapped) == SOME
    assert judge("i < 0", "i", "truncate[10]", 10, wrapped) == SOME
    assert judge("l < 0", "l", "truncate[10]", wrapped, wrapped) == SOME  # from when the column was an int
    last = 2**31 - 2  # a multiple of 7 beyond what Java makes of -2^31, so a range to it may hold that
    assert judge("i < 0", "i", "truncate[7]", 7, last) == SOME
    assert judge("i > 7", "i", "truncate[7]", last, last) == SOME
    assert judge("l > 7", "l", "truncate[7]", 2**63 - 1, 2**63 - 1) == SOME


def test_cut_decimals_bound_what_they_were_up_to_the_last_one() -> None:
    low, high = decimal.Decimal("10.00"), decimal.Decimal("10.50")
    assert judge("m > 10.99", "m", "truncate[50]", low, high) == NONE
    assert judge("m > 10.98", "m", "truncate[50]", low, high) == SOME
    assert judge("m < 10.00", "m", "truncate[50]", low, high) == NONE
    last = decimal.Decimal("9999999.95")
    assert judge("m > 9999999.94", "m", "truncate[35]", last, last) == ALL
    assert judge("m < 9999999.99", "m", "truncate[35]", last, last) == SOME


def test_one_known_bound_of_a_time_is_enough() -> None:
    assert judge("t < '2026-11-01T00:00:00'", "t", "month", NOVEMBER, None) == NONE
    assert judge("t >= '2027-01-01T00:00:00'", "t", "month", None, NOVEMBER) == NONE
