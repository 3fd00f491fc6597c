package icefloe.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.types.StructType;

/** Marks the place of a scan in a plan until PlannedScans replaces it by a scan of Spark's own Parquet reader. */
public class IcefloeScan implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering {
  final IcefloeTable table;
  final StructType wanted;
  final Map options;
  final ArrayNode filters;  // of the query, which applies them
  final String operation;  // the row change that reads; null in a query
  private ScanEstimate estimate;  // once Spark has asked for it

  IcefloeScan(IcefloeTable table, StructType wanted, Map options, ArrayNode filters, String operation) {
    this.table = table;
    this.wanted = wanted;
    this.options = options;
    this.filters = filters;
    this.operation = operation;
  }

  /** The same scan as part of a row change. */
  IcefloeScan(IcefloeScan scan, String operation) {
    this(scan.table, scan.wanted, scan.options, scan.filters, operation);
  }

  /** The call that returns the plan of the scan. */
  ObjectNode call() {
    ObjectNode call = Json.call("plan scan").put("handle", table.handle());
    call.set("columns", Json.array(wanted.fieldNames()));
    call.set("options", Json.object(options));
    return operation == null ? call : filtered(call).put("operation", operation);
  }

  /** The call with the filters of the query, by which files are skipped that Spark does not read itself. */
  ObjectNode filtered(ObjectNode call) { return (ObjectNode) call.set("filters", filters); }

  public StructType readSchema() { return wanted; }
  public String description() { return StreamSupport.description(table); }

  public Statistics estimateStatistics() {
    if (estimate == null) estimate = ScanEstimate.of(this);
    return estimate;
  }

  /** The columns whose values of the other side of a join can skip files; RuntimeFilters lets them do so. */
  public NamedReference[] filterAttributes() {
    java.util.ArrayList columns = new java.util.ArrayList();
    for (int i = 0; i < wanted.length(); i++) {
      if (FileBounds.areKnown(wanted.apply(i).dataType())) {
        columns.add(org.apache.spark.sql.connector.expressions.FieldReference$.MODULE$.column(wanted.apply(i).name()));
      }
    }
    return (NamedReference[]) columns.toArray(new NamedReference[0]);
  }

  public void filter(Predicate[] predicates) { }  // the plan in place of this scan has the filters

  public Batch toBatch() { throw table.peer.notPlanned(); }

  public boolean equals(Object other) {
    return other instanceof IcefloeScan && ((IcefloeScan) other).table.equals(table)
        && ((IcefloeScan) other).wanted.equals(wanted) && ((IcefloeScan) other).options.equals(options)
        && ((IcefloeScan) other).filters.equals(filters) && Objects.equals(((IcefloeScan) other).operation, operation);
  }

  public int hashCode() { return table.hashCode() * 31 + wanted.hashCode(); }
}
