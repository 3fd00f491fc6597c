package icefloe.sql;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;

/** The rows that a procedure returns. */
public class ProcedureRows implements LocalScan {
  private final StructType schema;
  private final InternalRow[] rows;

  ProcedureRows(StructType schema, InternalRow[] rows) {
    this.schema = schema;
    this.rows = rows;
  }

  public StructType readSchema() { return schema; }
  public InternalRow[] rows() { return rows; }
}
