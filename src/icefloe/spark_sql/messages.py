"""The messages between the Java classes and Python, as JSON: calls, and the descriptions that answer them.

Each call is a struct, with the name that the Java class sends under ``call``. To add one: a struct here, in ``Call``,
and a method with a parameter ``call`` of its type in a class that ``peer.py`` lists. An answer is ``{"value": ...}`` or
a ``Failure``.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from icefloe.spark_sql.conditions import Node
from icefloe.spark_sql.scan_messages import EstimateScan, PlanAggregates, PlanScan
from icefloe.spark_sql.streams.messages import LatestOffset, NewestSnapshot, PlanBatch, WriteBatch


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a call or of an answer."""


class CallMessage(Message, frozen=True, kw_only=True, tag_field="call"):
    """A call from Java."""


class NamespaceCall(CallMessage, frozen=True, kw_only=True):
    """A call about a namespace."""

    namespace: tuple[str, ...]


class TableCall(NamespaceCall, frozen=True, kw_only=True):
    """A call about a table, by its name."""

    name: str

    @property
    def identifier(self) -> tuple[str, ...]:
        """The namespace and the name."""
        return (*self.namespace, self.name)


class ListNamespaces(NamespaceCall, frozen=True, tag="list namespaces"):
    """The namespaces in a namespace."""


class LoadNamespace(NamespaceCall, frozen=True, tag="load namespace"):
    """The properties of a namespace."""


class CreateNamespace(NamespaceCall, frozen=True, kw_only=True, tag="create namespace"):
    """CREATE NAMESPACE."""

    properties: dict[str, str]


class AlterNamespace(NamespaceCall, frozen=True, kw_only=True, tag="alter namespace"):
    """ALTER NAMESPACE SET or UNSET PROPERTIES."""

    updates: dict[str, str]
    removals: tuple[str, ...]


class DropNamespace(NamespaceCall, frozen=True, kw_only=True, tag="drop namespace"):
    """DROP NAMESPACE; ``cascade`` drops its tables too."""

    cascade: bool


class ListTables(NamespaceCall, frozen=True, tag="list tables"):
    """The names of the tables in a namespace."""


class LoadTable(TableCall, frozen=True, kw_only=True, tag="load table"):
    """A table, or a state of its past: by snapshot id, tag or branch, or by time."""

    version: str | None = None
    timestamp_us: int | None = None
    wap_branch: str | None = None  # the setting spark.wap.branch


class PartitionTransform(Message, frozen=True, kw_only=True):
    """A partition transform: its name in Spark, its numbers, the paths of its columns."""

    transform: str
    columns: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...] = ()
    text: str = ""  # as Spark prints it, for messages


class Definition(TableCall, frozen=True, kw_only=True):
    """A call with the definition of a table; the schema is the JSON of a StructType."""

    schema: str
    partitioning: tuple[PartitionTransform, ...]
    properties: dict[str, str]


class CreateTable(Definition, frozen=True, kw_only=True, tag="create table"):
    """CREATE TABLE."""


class StageTable(Definition, frozen=True, kw_only=True, tag="stage table"):
    """The first part of CREATE TABLE AS SELECT, REPLACE TABLE and CREATE OR REPLACE TABLE."""

    mode: Literal["create", "replace", "create or replace"]


class CommitStaged(CallMessage, frozen=True, kw_only=True, tag="commit staged"):
    """The end of a statement whose table is staged."""

    handle: str


class AbortStaged(CallMessage, frozen=True, kw_only=True, tag="abort staged"):
    """The failure of a statement whose table is staged."""

    handle: str


class TableChange(Message, frozen=True, kw_only=True, tag_field="change"):
    """A change of ALTER TABLE."""


class SetProperty(TableChange, frozen=True, kw_only=True, tag="set property"):
    """SET TBLPROPERTIES."""

    property: str
    value: str


class RemoveProperty(TableChange, frozen=True, kw_only=True, tag="remove property"):
    """UNSET TBLPROPERTIES."""

    property: str


class ColumnChange(TableChange, frozen=True, kw_only=True):
    """A change of a column, or of a field inside it, by its path."""

    column: tuple[str, ...]


class AddColumn(ColumnChange, frozen=True, kw_only=True, tag="add column"):
    """ADD COLUMN; the type is JSON, the default SQL."""

    type: str
    nullable: bool
    comment: str | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None


class RenameColumn(ColumnChange, frozen=True, kw_only=True, tag="rename column"):
    """RENAME COLUMN."""

    new_name: str


class DropColumn(ColumnChange, frozen=True, kw_only=True, tag="drop column"):
    """DROP COLUMN."""

    if_exists: bool


class SetType(ColumnChange, frozen=True, kw_only=True, tag="set type"):
    """ALTER COLUMN TYPE."""

    type: str


class SetNullability(ColumnChange, frozen=True, kw_only=True, tag="set nullability"):
    """ALTER COLUMN SET or DROP NOT NULL."""

    nullable: bool


class SetComment(ColumnChange, frozen=True, kw_only=True, tag="set comment"):
    """ALTER COLUMN COMMENT."""

    comment: str


class MoveColumn(ColumnChange, frozen=True, kw_only=True, tag="move column"):
    """ALTER COLUMN FIRST or AFTER."""

    first: bool = False
    after: str | None = None


class SetDefault(ColumnChange, frozen=True, kw_only=True, tag="set default"):
    """ALTER COLUMN SET or DROP DEFAULT; the default is SQL, empty for none."""

    default: str | None = None


class OtherColumnChange(ColumnChange, frozen=True, kw_only=True, tag="other column"):
    """A change of a column that no message covers, by the name of its Java class."""

    name: str


class OtherChange(TableChange, frozen=True, kw_only=True, tag="other"):
    """A change that no message covers, by the name of its Java class."""

    name: str


AnyColumnChange = (
    AddColumn
    | RenameColumn
    | DropColumn
    | SetType
    | SetNullability
    | SetComment
    | MoveColumn
    | SetDefault
    | OtherColumnChange
)


class AlterTable(TableCall, frozen=True, kw_only=True, tag="alter table"):
    """ALTER TABLE; all changes are one statement."""

    changes: tuple[SetProperty | RemoveProperty | AnyColumnChange | OtherChange, ...]


class DropTable(TableCall, frozen=True, kw_only=True, tag="drop table"):
    """DROP TABLE; ``purge`` deletes its files too."""

    purge: bool


class RenameTable(TableCall, frozen=True, kw_only=True, tag="rename table"):
    """ALTER TABLE RENAME TO."""

    new_namespace: tuple[str, ...]
    new_name: str


class WriteRows(CallMessage, frozen=True, kw_only=True, tag="write rows"):
    """An append or an overwrite; the call passes the rows as a DataFrame. ``where`` are parts of a conjunction."""

    handle: str
    mode: Literal["append", "overwrite all", "overwrite", "overwrite partitions"]
    options: dict[str, str]
    where: tuple[Node, ...] = ()


class TruncateTable(CallMessage, frozen=True, kw_only=True, tag="truncate table"):
    """TRUNCATE TABLE."""

    handle: str


class CanDelete(CallMessage, frozen=True, kw_only=True, tag="can delete"):
    """Whether a condition, parts of a conjunction, is a filter."""

    handle: str
    where: tuple[Node, ...]


class DeleteRows(CallMessage, frozen=True, kw_only=True, tag="delete rows"):
    """DELETE by a filter, parts of a conjunction; without any, all rows are deleted."""

    handle: str
    where: tuple[Node, ...]


class ChangeRows(CallMessage, frozen=True, kw_only=True, tag="change rows"):
    """An UPDATE, DELETE or MERGE; the call passes the rows, with their operations, as a DataFrame.

    With ``has_join`` it passes the join of the table with a source instead, which returns the rows.
    ``depends_on_kept_rows`` says whether rows of the table that do not change may decide which rows are inserted.
    """

    handle: str
    operation: str
    command: Literal["UPDATE", "DELETE", "MERGE"]
    depends_on_kept_rows: bool
    is_deterministic: bool
    has_join: bool = False


class ListProcedures(NamespaceCall, frozen=True, tag="list procedures"):
    """The names of the procedures in a namespace; they are in the namespace ``system``."""


class LoadProcedure(TableCall, frozen=True, tag="load procedure"):
    """A procedure, by its name."""


class CallProcedure(CallMessage, frozen=True, kw_only=True, tag="call procedure"):
    """CALL; the arguments are texts, or lists or maps of texts, without those that are null."""

    procedure: str
    arguments: dict[str, str | tuple[str, ...] | dict[str, str]]


Call = (
    ListNamespaces
    | LoadNamespace
    | CreateNamespace
    | AlterNamespace
    | DropNamespace
    | ListTables
    | LoadTable
    | CreateTable
    | StageTable
    | CommitStaged
    | AbortStaged
    | AlterTable
    | DropTable
    | RenameTable
    | PlanScan
    | PlanAggregates
    | EstimateScan
    | WriteRows
    | TruncateTable
    | CanDelete
    | DeleteRows
    | ChangeRows
    | ListProcedures
    | LoadProcedure
    | CallProcedure
    | WriteBatch
    | NewestSnapshot
    | LatestOffset
    | PlanBatch
)


class TableDescription(Message, frozen=True, kw_only=True):
    """What Spark asks of a table. Schemas are the JSON of StructTypes."""

    handle: str
    id: str | None  # that of the table, in all of its states
    name: str
    schema: str
    metadata_columns: str
    partitioning: tuple[PartitionTransform, ...]
    properties: dict[str, str]
    size_bytes: int
    rows: int | None
    capabilities: tuple[str, ...]  # names of Spark's TableCapability


class ParameterDescription(Message, frozen=True, kw_only=True):
    """A parameter of a procedure: its type, and the SQL of its default; without one it must be given."""

    name: str
    type: str
    default: str | None


class ProcedureDescription(Message, frozen=True, kw_only=True):
    """A procedure; ``result`` are the columns of its rows, as DDL."""

    name: str
    description: str
    parameters: tuple[ParameterDescription, ...]
    result: str


class Failure(Message, frozen=True, kw_only=True):
    """An error: its kind, which selects the exception of Spark, and its message."""

    kind: Literal["NoSuchTable", "NoSuchNamespace", "AlreadyExists", "NamespaceNotEmpty", "analysis", "execution"]
    message: str


_CALLS = msgspec.json.Decoder(Call)


def parse_call(text: str) -> Any:
    """The call that a text states, as one of the structs of ``Call``.

    >>> parse_call('{"call": "list tables", "namespace": ["db"]}')
    ListTables(namespace=('db',))
    """
    return _CALLS.decode(text)


def answer(value: object) -> str:
    """The answer with a value: ``{"value": ...}``."""
    return msgspec.json.encode({"value": value}).decode()


def failure(error: Failure) -> str:
    """The answer with an error."""
    return msgspec.json.encode({"failure": error}).decode()
