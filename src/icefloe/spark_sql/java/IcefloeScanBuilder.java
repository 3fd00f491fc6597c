package icefloe.sql;

import java.util.Map;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Records the columns and filters of a query; all filters stay in the query, which applies them to the rows. */
public class IcefloeScanBuilder
    implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
  private final IcefloeTable table;
  private final Map options;
  private final String operation;  // the row change that reads; null in a query
  private StructType wanted;
  private Predicate[] filters = new Predicate[0];

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

  public Predicate[] pushPredicates(Predicate[] predicates) {
    filters = predicates;
    return predicates;
  }

  public Predicate[] pushedPredicates() { return new Predicate[0]; }

  public Scan build() {
    IcefloeScan scan = new IcefloeScan(table, wanted, options, Predicates.messages(filters), operation);
    return StreamSupport.current.scan(scan);
  }
}
