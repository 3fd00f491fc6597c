package icefloe.sql;

import java.util.Map;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Records the columns that a query needs; filters stay in the query, and PlannedScans passes them to the files. */
public class IcefloeScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns {
  private final IcefloeTable table;
  private final Map options;
  private final String operation;  // the row change that reads; null in a query
  private StructType wanted;

  IcefloeScanBuilder(IcefloeTable table, CaseInsensitiveStringMap options, String operation) {
    this.table = table;
    this.options = options.asCaseSensitiveMap();
    this.operation = operation;
    this.wanted = table.schema();
  }

  /** Keeps columns whole: Spark prunes nested fields after PlannedScans has put in the file scan. */
  public void pruneColumns(StructType required) {
    StructField[] fields = new StructField[required.length()];
    for (int i = 0; i < fields.length; i++) {
      String name = required.apply(i).name();
      boolean isStored = table.schema().getFieldIndex(name).isDefined();
      fields[i] = (isStored ? table.schema() : table.metadataSchema()).apply(name);
    }
    wanted = new StructType(fields);
  }

  public Scan build() { return new IcefloeScan(table, wanted, options, operation); }
}
