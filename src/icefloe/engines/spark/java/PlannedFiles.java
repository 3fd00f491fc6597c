package icefloe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.QueryExecutionException;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.immutable.Seq;

/**
 * Lists the files of a scan. It passes the filters of the query, as SQL text, to a planner in Python, which returns an
 * Arrow stream (location, size, then one column per constant) or the text of an error, and converts the stream to
 * Spark's list of files. Executors do not need this class: they get file splits. Filters on the constants are applied
 * here, because Spark applies them nowhere else; the planner gets them as well.
 */
public class PlannedFiles implements FileIndex, Function {
  private final BiFunction planner;
  private final StructType constants;
  private final String table;
  private final long size;
  private final String[] bounded;  // the columns whose bounds are the last constants, two for each
  private final String first;  // which first rows are wanted: number and order; empty if all are
  private final String bucket;  // the partition field whose values are the last constant; empty if there is none

  public PlannedFiles(
      BiFunction planner, StructType constants, String table, long size, String[] bounded, String first, String bucket) {
    this.planner = planner;
    this.constants = constants;
    this.table = table;
    this.size = size;
    this.bounded = bounded;
    this.first = first;
    this.bucket = bucket;
  }

  /** The same files with other values of some fields, by their names. */
  public Object apply(Object changes) {
    Map changed = (Map) changes;
    return new PlannedFiles(planner, (StructType) changed.getOrDefault("constants", constants), table,
        ((Long) changed.getOrDefault("size", Long.valueOf(size))).longValue(),
        (String[]) changed.getOrDefault("bounded", bounded), (String) changed.getOrDefault("first", first),
        (String) changed.getOrDefault("bucket", bucket));
  }

  /** Whether the files and their size are the same: Spark reads equal relations once. */
  public boolean equals(Object other) {
    return other instanceof PlannedFiles && ((PlannedFiles) other).planner == planner
        && ((PlannedFiles) other).size == size && ((PlannedFiles) other).first.equals(first)
        && ((PlannedFiles) other).bucket.equals(bucket)
        && ((PlannedFiles) other).constants.equals(constants) && Arrays.equals(((PlannedFiles) other).bounded, bounded);
  }

  public int hashCode() { return System.identityHashCode(planner) * 31 + constants.hashCode(); }

  public Seq rootPaths() { return single(new Path(table)); }
  public void refresh() { }
  public long sizeInBytes() { return size; }
  public StructType partitionSchema() { return constants; }
  public String toString() { return "icefloe(" + table + ")"; }

  public String[] inputFiles() {
    Seq directories = listFiles(seq(new ArrayList()), seq(new ArrayList()));
    ArrayList names = new ArrayList();
    for (int i = 0; i < directories.size(); i++) {
      Seq files = ((PartitionDirectory) directories.apply(i)).files();
      for (int j = 0; j < files.size(); j++) {
        names.add(((FileStatusWithMetadata) files.apply(j)).getPath().toString());
      }
    }
    return (String[]) names.toArray(new String[0]);
  }

  public Seq listFiles(Seq onConstants, Seq onData) {
    String zone = SQLConf$.MODULE$.get().sessionLocalTimeZone();
    StringBuilder request = new StringBuilder(line(zone) + line(first) + line(bucket));
    for (int i = 0; i < bounded.length; i++) request.append(line(bounded[i]));
    Object answer = planner.apply(request.toString(), text(onConstants) + text(onData));
    if (answer instanceof String) Platform.throwException(new QueryExecutionException((String) answer, null));
    try {
      return seq(directories(stream(answer), predicates(onConstants)));
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  private static java.io.InputStream stream(Object answer) throws java.io.IOException {
    if (answer instanceof byte[]) return new java.io.ByteArrayInputStream((byte[]) answer);
    return new java.io.BufferedInputStream(new java.io.FileInputStream((java.io.File) answer), 1 << 20);
  }

  private ArrayList directories(java.io.InputStream answer, List predicates) throws java.io.IOException {
    ArrayList directories = new ArrayList();
    ArrayList files = new ArrayList();  // if there are no constants: all in one directory
    scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
    BufferAllocator memory =
        ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("icefloe plan", 0L, Long.MAX_VALUE);
    ArrowStreamReader reader = new ArrowStreamReader(answer, memory);
    try {
      while (reader.loadNextBatch()) {
        VectorSchemaRoot rows = reader.getVectorSchemaRoot();
        ArrowColumnVector location = new ArrowColumnVector(rows.getVector(0));
        ArrowColumnVector length = new ArrowColumnVector(rows.getVector(1));
        ArrowColumnVector[] columns = new ArrowColumnVector[constants.length()];
        for (int j = 0; j < columns.length; j++) columns[j] = new ArrowColumnVector(rows.getVector(2 + j));
        for (int i = 0; i < rows.getRowCount(); i++) {
          GenericInternalRow row = constantsOf(columns, i);
          if (!holds(predicates, row)) continue;
          Path path = new Path(location.getUTF8String(i).toString());
          FileStatus file = new FileStatus(length.getLong(i), false, 1, 134217728L, 0L, path);
          FileStatusWithMetadata listed = new FileStatusWithMetadata(file, none);
          if (columns.length == 0) files.add(listed);
          else directories.add(new PartitionDirectory(row, single(listed)));
        }
      }
    } finally {
      reader.close();
      memory.close();
    }
    if (files.size() > 0) directories.add(new PartitionDirectory(new GenericInternalRow(new Object[0]), seq(files)));
    return directories;
  }

  private GenericInternalRow constantsOf(ArrowColumnVector[] columns, int i) {
    Object[] values = new Object[columns.length];
    for (int j = 0; j < values.length; j++) {
      if (!columns[j].isNullAt(i)) values[j] = value(columns[j], i, constants.apply(j).dataType());
    }
    return new GenericInternalRow(values);
  }

  /** The value as Spark keeps it in rows; text is copied, because Arrow's memory is freed. */
  private static Object value(ArrowColumnVector column, int i, DataType type) {
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) {
      return Long.valueOf(column.getLong(i));
    }
    if (type instanceof IntegerType || type instanceof DateType) return Integer.valueOf(column.getInt(i));
    if (type instanceof StringType) return UTF8String.fromBytes(column.getUTF8String(i).getBytes());
    if (type instanceof BinaryType) return column.getBinary(i);
    if (type instanceof BooleanType) return Boolean.valueOf(column.getBoolean(i));
    if (type instanceof FloatType) return Float.valueOf(column.getFloat(i));
    if (type instanceof DoubleType) return Double.valueOf(column.getDouble(i));
    if (type instanceof DecimalType) {
      return column.getDecimal(i, ((DecimalType) type).precision(), ((DecimalType) type).scale());
    }
    throw new IllegalArgumentException("a file cannot have a constant of type " + type);
  }

  private List predicates(Seq expressions) {
    ArrayList predicates = new ArrayList();
    for (int i = 0; i < expressions.size(); i++) {
      Expression expression = (Expression) expressions.apply(i);
      predicates.add(Predicate$.MODULE$.create(expression, attributes(expression)));
    }
    return predicates;
  }

  private Seq attributes(Expression expression) {
    ArrayList attributes = new ArrayList();
    for (int j = 0; j < constants.length(); j++) {
      StructField field = constants.apply(j);
      Attribute match = null;
      scala.collection.Iterator used = expression.references().iterator();
      while (used.hasNext()) {
        Attribute attribute = (Attribute) used.next();
        if (attribute.name().equals(field.name())) match = attribute;
      }
      if (match == null) match = new AttributeReference(field.name(), field.dataType(), true, field.metadata(),
          NamedExpression$.MODULE$.newExprId(), seq(new ArrayList()));
      attributes.add(match);
    }
    return seq(attributes);
  }

  private static boolean holds(List predicates, GenericInternalRow row) {
    for (int i = 0; i < predicates.size(); i++) {
      if (!((BasePredicate) predicates.get(i)).eval(row)) return false;
    }
    return true;
  }

  private static String text(Seq filters) {
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < filters.size(); i++) {
      lines.append(line(((Expression) ((Expression) filters.apply(i)).transform(new Unqualified())).sql()));
    }
    return lines.toString();
  }

  private static String line(String text) { return text.replace("\\", "\\\\").replace("\n", "\\n") + "\n"; }

  /** Columns by their own names: in a view or under an alias they carry its name in front. */
  private static class Unqualified extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) { return node instanceof AttributeReference; }
    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      return ((AttributeReference) node).withQualifier(seq(new ArrayList()));
    }
  }

  static Seq seq(List items) {
    return (Seq) scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(items.toArray());
  }

  private static Seq single(Object item) {
    ArrayList items = new ArrayList(1);
    items.add(item);
    return seq(items);
  }
}
