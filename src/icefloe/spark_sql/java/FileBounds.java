package icefloe.sql;

import java.util.Arrays;
import java.util.Comparator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.TypeUtils$;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.types.BooleanType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType$;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.TimestampNTZType$;
import org.apache.spark.sql.types.TimestampType$;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * Whether a file may contain one of the values that a filter at run time collects: true if one of them is between the
 * bounds of the file, or if the file has no bounds.
 */
public class FileBounds extends Expression implements CodegenFallback, java.io.Serializable {
  private final Expression lower;
  private final Expression upper;
  private final Expression filter;  // DynamicPruning, whose key is the lower bound
  private Object[] sorted;  // the values, once they are known

  public FileBounds(Expression lower, Expression upper, Expression filter) {
    this.lower = lower;
    this.upper = upper;
    this.filter = filter;
  }

  /** Whether files have bounds of values of a type that compare as Spark compares the values. */
  static boolean areKnown(DataType type) {
    return type == IntegerType$.MODULE$ || type == LongType$.MODULE$ || type == DateType$.MODULE$
        || type == TimestampType$.MODULE$ || type == TimestampNTZType$.MODULE$ || type instanceof DecimalType
        || type.equals(StringType$.MODULE$);
  }

  public Object eval(InternalRow row) {
    Object[] values = values();
    Object least = lower.eval(row);
    Object greatest = upper.eval(row);
    if (values == null || least == null || greatest == null) return Boolean.TRUE;
    Comparator order = order();
    int place = Arrays.binarySearch(values, least, order);
    if (place >= 0) return Boolean.TRUE;
    int next = -place - 1;  // the first value above the lower bound
    return Boolean.valueOf(next < values.length && order.compare(values[next], greatest) <= 0);
  }

  /** The values in order, without null; null if Spark did not collect any. */
  private Object[] values() {
    if (sorted == null) {
      Expression child = (Expression) filter.children().head();
      if (!(child instanceof InSubqueryExec) || ((InSubqueryExec) child).values().isEmpty()) return null;
      Object[] collected = (Object[]) ((InSubqueryExec) child).values().get();
      java.util.ArrayList values = new java.util.ArrayList(collected.length);
      for (int i = 0; i < collected.length; i++) {
        if (collected[i] != null) values.add(collected[i]);
      }
      Object[] array = values.toArray();
      Arrays.sort(array, order());
      sorted = array;
    }
    return sorted;
  }

  private Comparator order() { return TypeUtils$.MODULE$.getInterpretedOrdering(lower.dataType()); }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return CodegenFallback.doGenCode$(this, context, code);
  }

  /** What executors get, which have no class of this package: they get plans with filters of files, and use none. */
  public Object writeReplace() { return Literal.TrueLiteral(); }

  public boolean nullable() { return false; }
  public DataType dataType() { return BooleanType$.MODULE$; }

  public Seq children() {
    java.util.ArrayList children = new java.util.ArrayList();
    children.add(lower);
    children.add(upper);
    children.add(filter);
    return Json.seq((java.util.List) children);
  }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new FileBounds(
        (Expression) children.apply(0), (Expression) children.apply(1), (Expression) children.apply(2));
  }

  public String toString() { return "bounds(" + lower + ", " + upper + ") overlap " + filter; }
  public int productArity() { return 3; }
  public Object productElement(int n) { return n == 0 ? lower : n == 1 ? upper : filter; }
  public boolean canEqual(Object other) { return other instanceof FileBounds; }
  public boolean equals(Object other) {
    return other instanceof FileBounds && ((FileBounds) other).lower.equals(lower)
        && ((FileBounds) other).upper.equals(upper) && ((FileBounds) other).filter.equals(filter);
  }
  public int hashCode() { return lower.hashCode() * 31 + filter.hashCode(); }
}
