"""Options of writes."""

from __future__ import annotations

from icefloe.spark_sql.options.write_options import summary_properties


def test_options_with_the_prefix_become_properties_of_the_summary() -> None:
    options = {"Snapshot-Property.Team": "sales", "snapshot-property.a.b": "", "snapshot-property.": "x", "team": "hr"}
    assert summary_properties(options) == {"Team": "sales", "a.b": ""}
    assert summary_properties({}) == {}
