package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.UUID;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;

/** An UPDATE, DELETE or MERGE: Spark finds the rows by file and position, and computes the new ones. */
public class RowChange implements RowLevelOperationBuilder, SupportsDelta {
  private static final String[] ROW_ID = {"_file", "_pos"};

  private final IcefloeTable table;
  private final RowLevelOperationInfo info;
  private final String id = UUID.randomUUID().toString();  // under which Python records what the scans read

  RowChange(IcefloeTable table, RowLevelOperationInfo info) {
    this.table = table;
    this.info = info;
  }

  public RowLevelOperation build() {
    for (int i = 0; i < ROW_ID.length; i++) {
      if (!hasMetadataColumn(ROW_ID[i])) {
        Platform.throwException(Failures.analysis("table " + table.name() + " has a column " + ROW_ID[i]
            + ", which hides the metadata column by which rows are found; rename it to change rows"));
      }
    }
    return this;
  }

  public RowLevelOperation.Command command() { return info.command(); }
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new IcefloeScanBuilder(table, options, id);
  }

  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo write) {
    ObjectNode call = Json.call("change rows").put("handle", table.handle()).put("operation", id);
    return new RowChangeWrite(table, call.put("command", info.command().toString()));
  }

  public NamedReference[] rowId() {
    return new NamedReference[] {Expressions.column(ROW_ID[0]), Expressions.column(ROW_ID[1])};
  }

  public NamedReference[] requiredMetadataAttributes() {
    if (!hasMetadataColumn("_row_id")) return new NamedReference[0];
    return new NamedReference[] {Expressions.column("_row_id")};
  }

  private boolean hasMetadataColumn(String name) { return table.metadataSchema().getFieldIndex(name).isDefined(); }
}
