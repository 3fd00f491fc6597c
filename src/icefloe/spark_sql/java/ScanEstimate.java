package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.FieldReference$;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal$;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/**
 * How much a scan reads: the rows and bytes of the files that the filters of the query leave. If the session has
 * spark.sql.cbo.enabled, also what is known of the columns.
 */
public class ScanEstimate implements Statistics {
  private final JsonNode rows;
  private final long size;
  private final Map columns;  // NamedReference -> Column

  private ScanEstimate(JsonNode rows, long size, Map columns) {
    this.rows = rows;
    this.size = size;
    this.columns = columns;
  }

  static ScanEstimate of(IcefloeScan scan) {
    boolean isOfChange = scan.operation != null;  // which plans its files once, when it runs
    boolean describesColumns = SQLConf$.MODULE$.get().cboEnabled() && !isOfChange;
    JsonNode known = scan.table.description;
    if (describesColumns || (scan.filters.size() > 0 && !isOfChange)) {
      ObjectNode call = Json.call("estimate scan").put("handle", scan.table.handle());
      call.set("options", Json.object(scan.options));
      call.set("columns", Json.array(describesColumns ? scan.wanted.fieldNames() : new String[0]));
      known = scan.table.peer.ask(scan.filtered(call));
    }
    HashMap columns = new HashMap();
    for (int i = 0; describesColumns && i < scan.wanted.length(); i++) {
      String name = scan.wanted.apply(i).name();
      if (!Json.has(Json.at(known, "columns"), name)) continue;
      Column column = new Column(Json.at(Json.at(known, "columns"), name), scan.wanted.apply(i).dataType());
      columns.put(FieldReference$.MODULE$.column(name), column);
    }
    long size = Json.at(known, "size_bytes").asLong();
    return new ScanEstimate(Json.at(known, "rows"), selected(size, scan.wanted, scan.table.schema()), columns);
  }

  /** The bytes of some columns, in the proportion in which Spark estimates the sizes of values. */
  private static long selected(long size, StructType wanted, StructType all) {
    double share = (8.0 + wanted.defaultSize()) / (8.0 + all.defaultSize());
    return (long) Math.ceil(size * Math.min(share, 1.0));
  }

  public OptionalLong sizeInBytes() { return OptionalLong.of(size); }
  public OptionalLong numRows() { return rows.isNull() ? OptionalLong.empty() : OptionalLong.of(rows.asLong()); }
  public Map columnStats() { return columns; }

  private static class Column implements ColumnStatistics {
    private final JsonNode known;
    private final DataType type;

    Column(JsonNode known, DataType type) {
      this.known = known;
      this.type = type;
    }

    public OptionalLong nullCount() { return number(Json.at(known, "nulls")); }
    public OptionalLong distinctCount() { return number(Json.at(known, "distinct")); }
    public Optional min() { return value(Json.text(known, "least")); }
    public Optional max() { return value(Json.text(known, "greatest")); }

    private static OptionalLong number(JsonNode value) {
      return value == null || value.isNull() ? OptionalLong.empty() : OptionalLong.of(value.asLong());
    }

    /** The value as Spark stores it. */
    private Optional value(String text) {
      if (text == null) return Optional.empty();
      if (type instanceof IntegerType || type instanceof DateType) return Optional.of(Integer.valueOf(text));
      if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
        return Optional.of(Long.valueOf(text));
      }
      if (type instanceof DecimalType) return Optional.of(Decimal$.MODULE$.apply(text));
      return Optional.of(Double.valueOf(text));
    }
  }
}
