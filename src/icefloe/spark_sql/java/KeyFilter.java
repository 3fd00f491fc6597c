package icefloe.sql;

import java.util.LinkedHashSet;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.TimestampNTZType$;
import org.apache.spark.sql.types.TimestampType$;

/** A filter for the rows of a table that may have the keys of a source: a list of the keys, or their range. */
public class KeyFilter {
  private static final int LISTED_ROWS = 100;  // of more rows, the filter has the least and the greatest key

  static String name(int key) { return "key_" + key; }

  static boolean canFilter(DataType type) {
    return type == IntegerType$.MODULE$ || type == LongType$.MODULE$ || type == DateType$.MODULE$
        || type == TimestampType$.MODULE$ || type == TimestampNTZType$.MODULE$ || type instanceof DecimalType
        || type.equals(StringType$.MODULE$);
  }

  /** One row: the number of rows, and the least and the greatest value of each key. */
  static InternalRow[] ends(Dataset keys, int number) {
    String[] columns = new String[1 + 2 * number];
    columns[0] = "count(*)";
    for (int i = 0; i < number; i++) {
      columns[1 + 2 * i] = "min(" + name(i) + ")";
      columns[2 + 2 * i] = "max(" + name(i) + ")";
    }
    return rows(keys.selectExpr(columns));
  }

  static InternalRow[] rows(Dataset frame) { return frame.queryExecution().executedPlan().executeCollect(); }

  static boolean areListed(InternalRow[] ends) { return ends[0].getLong(0) <= LISTED_ROWS; }

  /** The filter on columns, by the ends of the keys that they must equal, and by the rows of keys if they are few. */
  static Expression of(List columns, InternalRow[] ends, InternalRow[] listed) {
    Expression filter = null;
    for (int i = 0; i < columns.size(); i++) {
      Expression column = (Expression) columns.get(i);
      if (ends[0].isNullAt(1 + 2 * i)) return Literal.FalseLiteral();  // no row has a key that equals anything
      Expression part = listed == null ? range(column, ends[0], 1 + 2 * i) : list(column, listed, i);
      filter = filter == null ? part : new And(filter, part);
    }
    return filter;
  }

  private static Expression range(Expression column, InternalRow ends, int place) {
    DataType type = column.dataType();
    return new And(
        new GreaterThanOrEqual(column, new Literal(ends.get(place, type), type)),
        new LessThanOrEqual(column, new Literal(ends.get(place + 1, type), type)));
  }

  private static Expression list(Expression column, InternalRow[] rows, int key) {
    DataType type = column.dataType();
    LinkedHashSet values = new LinkedHashSet();
    for (int i = 0; i < rows.length; i++) {
      if (!rows[i].isNullAt(key)) values.add(new Literal(rows[i].get(key, type), type));
    }
    return new In(column, Json.seq((List) new java.util.ArrayList(values)));
  }
}
