package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import org.apache.spark.sql.connector.catalog.DefaultValue;
import org.apache.spark.sql.connector.catalog.TableChange;

/** The changes of ALTER TABLE as messages. */
public class TableChanges {
  static ObjectNode message(TableChange change) {
    if (change instanceof TableChange.SetProperty) {
      TableChange.SetProperty set = (TableChange.SetProperty) change;
      return change("set property").put("property", set.property()).put("value", set.value());
    }
    if (change instanceof TableChange.RemoveProperty) {
      return change("remove property").put("property", ((TableChange.RemoveProperty) change).property());
    }
    if (change instanceof TableChange.ColumnChange) return columnMessage((TableChange.ColumnChange) change);
    return change("other").put("name", change.getClass().getSimpleName());
  }

  private static ObjectNode columnMessage(TableChange.ColumnChange change) {
    ObjectNode message = columnChange(change);
    message.set("column", Json.array(change.fieldNames()));
    return message;
  }

  private static ObjectNode columnChange(TableChange.ColumnChange change) {
    if (change instanceof TableChange.AddColumn) return added((TableChange.AddColumn) change);
    if (change instanceof TableChange.RenameColumn) {
      return change("rename column").put("new_name", ((TableChange.RenameColumn) change).newName());
    }
    if (change instanceof TableChange.DeleteColumn) {
      return change("drop column").put("if_exists", ((TableChange.DeleteColumn) change).ifExists().booleanValue());
    }
    if (change instanceof TableChange.UpdateColumnType) {
      return change("set type").put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
    }
    if (change instanceof TableChange.UpdateColumnNullability) {
      return change("set nullability").put("nullable", ((TableChange.UpdateColumnNullability) change).nullable());
    }
    if (change instanceof TableChange.UpdateColumnComment) {
      return change("set comment").put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    }
    if (change instanceof TableChange.UpdateColumnPosition) {
      return positioned(change("move column"), ((TableChange.UpdateColumnPosition) change).position());
    }
    if (change instanceof TableChange.UpdateColumnDefaultValue) {
      return change("set default").put("default", ((TableChange.UpdateColumnDefaultValue) change).newDefaultValue());
    }
    return change("other column").put("name", change.getClass().getSimpleName());
  }

  private static ObjectNode added(TableChange.AddColumn add) {
    ObjectNode message = change("add column").put("type", add.dataType().json()).put("nullable", add.isNullable());
    message.put("comment", add.comment());
    if (add.defaultValue() != null) message.put("default", text(add.defaultValue()));
    return add.position() == null ? message : positioned(message, add.position());
  }

  /** The text of a default. In Spark 4.3 a class that is not public has this method, so it is found by its name. */
  private static String text(DefaultValue value) {
    try {
      Method getSql = value.getClass().getMethod("getSql", new Class[0]);
      getSql.setAccessible(true);
      return (String) getSql.invoke(value, new Object[0]);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static ObjectNode positioned(ObjectNode message, TableChange.ColumnPosition position) {
    if (!(position instanceof TableChange.After)) return message.put("first", true);
    return message.put("after", ((TableChange.After) position).column());
  }

  private static ObjectNode change(String name) { return Json.object().put("change", name); }
}
