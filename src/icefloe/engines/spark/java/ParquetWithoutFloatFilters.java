package icefloe.spark;

import java.util.ArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * Reads Parquet files without filters on float columns. Parquet's row group filters compare floats by their bits, so
 * they skip row groups that have matching rows: a dictionary with -0.0 does not contain 0.0, and bounds omit NaN, which
 * is greater than any number in SQL. Spark itself still evaluates every filter on the rows. Executors do not need this
 * class: it returns the reader of Spark's own format, which would otherwise capture and serialise it.
 */
public class ParquetWithoutFloatFilters extends ParquetFileFormat {
  @Override
  public scala.Function1 buildReaderWithPartitionValues(SparkSession session, StructType data, StructType constants,
      StructType read, Seq filters, scala.collection.immutable.Map options, Configuration settings) {
    ArrayList safe = new ArrayList();
    for (int i = 0; i < filters.size(); i++) {
      if (isSafe((Filter) filters.apply(i), data)) safe.add(filters.apply(i));
    }
    Seq remaining = scala.jdk.javaapi.CollectionConverters.asScala(safe).toSeq();
    return new ParquetFileFormat().buildReaderWithPartitionValues(
        session, data, constants, read, remaining, options, settings);
  }

  private static boolean isSafe(Filter filter, StructType data) {
    if (filter instanceof And) return isSafe(((And) filter).left(), data) && isSafe(((And) filter).right(), data);
    if (filter instanceof Or) return isSafe(((Or) filter).left(), data) && isSafe(((Or) filter).right(), data);
    if (filter instanceof Not) return isSafe(((Not) filter).child(), data);
    if (filter instanceof IsNull || filter instanceof IsNotNull) return true;
    String[][] columns = filter.v2references();
    for (int i = 0; i < columns.length; i++) {
      DataType type = typeOf(columns[i], data);
      if (type == null || type instanceof FloatType || type instanceof DoubleType) return false;
    }
    return true;
  }

  /** The type of a column, or null if there is none of the name. */
  private static DataType typeOf(String[] path, DataType type) {
    for (int i = 0; i < path.length; i++) {
      if (!(type instanceof StructType)) return null;
      StructField[] fields = ((StructType) type).fields();
      type = null;
      for (int j = 0; j < fields.length; j++) {
        if (fields[j].name().equals(path[i])) type = fields[j].dataType();
      }
    }
    return type;
  }
}
