package icefloe.sql;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;

/** A column that every table has without storing it, such as _file and _pos. */
public class IcefloeMetadataColumn implements MetadataColumn {
  private final StructField field;

  IcefloeMetadataColumn(StructField field) { this.field = field; }

  public String name() { return field.name(); }
  public DataType dataType() { return field.dataType(); }
  public boolean isNullable() { return field.nullable(); }
  public String comment() { return field.getComment().isDefined() ? (String) field.getComment().get() : null; }
}
