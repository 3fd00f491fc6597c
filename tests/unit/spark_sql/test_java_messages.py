"""The Java classes send and read what the structs of the messages say: names of calls, fields, modes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec.inspect import Field, StructType, type_info

import icefloe
from icefloe.engines.spark.java_classes import java_sources
from icefloe.spark_sql import messages
from icefloe.spark_sql.peer import handlers
from icefloe.spark_sql.scan_messages import ScanEstimate

ANSWERS = tuple[messages.TableDescription, messages.ProcedureDescription, messages.Failure, ScanEstimate]
FRAME = {"value", "failure"}  # around an answer


def java() -> str:
    """All sources."""
    folders = ("java", "java/buckets", "java/streams", "java/source")
    return "\n".join(text for folder in folders for text in java_sources("icefloe.spark_sql", folder).values())


def sent_calls(text: str) -> set[str]:
    return set(re.findall(r'\b(?:call|definition|deletion)\("([^"]+)"', text))


def sent_changes(text: str) -> set[str]:
    return set(re.findall(r'\bchange\("([^"]+)"', text))


def sent_nodes(text: str) -> set[str]:
    return set(re.findall(r'\.put\("node", "([^"]+)"', text))


def sent_modes(text: str) -> set[str]:
    return set(re.findall(r'(?:put\("mode", |staged\()"([^"]+)"', text))


def sent_fields(text: str) -> set[str]:
    return set(re.findall(r'\.(?:put|set)\("([^"]+)"', text))


def read_fields(text: str) -> set[str]:
    return set(re.findall(r'(?=\b(?:at|text|has)\((?:[\w.]+|[\w.]+\([^()]*\)), "([^"]+)"\))', text))


def structs(type_: Any) -> Iterator[StructType]:
    """The structs of a type, and those inside them."""
    seen: list[Any] = []
    pending = [type_info(type_)]
    while len(pending) > 0:
        info = pending.pop()
        if info in seen:
            continue
        seen.append(info)
        if isinstance(info, StructType):
            yield info
        for inner in ("types", "item_types", "fields"):
            pending += [each.type if isinstance(each, Field) else each for each in getattr(info, inner, ())]
        pending += [getattr(info, inner) for inner in ("item_type", "value_type") if hasattr(info, inner)]


def tags(tag_field: str) -> set[str]:
    return {str(each.tag) for each in structs(messages.Call) if each.tag_field == tag_field}


def fields(type_: Any) -> set[str]:
    return {field.encode_name for each in structs(type_) for field in each.fields}


def test_java_sends_every_call_and_no_other() -> None:
    assert sent_calls(java()) == tags("call")


def test_every_call_has_a_handler(tmp_path: Path) -> None:
    answered = handlers("demo", icefloe.catalog("demo", uri=f"file://{tmp_path}"))
    assert set(answered) == set(get_args(messages.Call))


def test_java_sends_every_change_and_every_part_of_a_condition() -> None:
    assert sent_changes(java()) == tags("change")
    assert sent_nodes(java()) == tags("node")


def test_java_sends_every_mode_and_no_other() -> None:
    literals = [field.type for each in structs(messages.Call) for field in each.fields if field.name == "mode"]
    assert sent_modes(java()) == {value for literal in literals for value in literal.values}


def test_java_sends_every_field_of_calls_and_no_other() -> None:
    assert sent_fields(java()) == fields(messages.Call) | {"call", "change", "node"}


def test_java_reads_every_field_of_answers_and_no_other() -> None:
    sent = fields(messages.Call) | {"call"}  # some of them are also read: for the exceptions of Spark, and in answers
    assert read_fields(java()) - sent == (fields(ANSWERS) | FRAME) - sent


def test_a_call_without_a_field_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="missing required field `name`"):
        messages.parse_call('{"call": "drop table", "namespace": ["db"], "purge": true}')


def test_texts_of_java_are_found() -> None:
    text = """
      ObjectNode call = Json.call("list tables", namespace).put("purge", true);
      call.set("options", Json.object(options));
      call = definition("create table", ident).put("mode", "append");
      return staged("create or replace", change("set type"), deletion("can delete", predicates));
      message.put("node", "column").put("x", Json.text(Json.at(description, "parameters"), "name"));
      return has(call, "new_name") ? "true" : null;
    """
    assert sent_calls(text) == {"list tables", "create table", "can delete"}
    assert sent_changes(text) == {"set type"}
    assert sent_nodes(text) == {"column"}
    assert sent_modes(text) == {"append", "create or replace"}
    assert sent_fields(text) == {"purge", "options", "mode", "node", "x"}
    assert read_fields(text) == {"parameters", "name", "new_name"}
