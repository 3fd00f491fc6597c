package icefloe.sql;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.collection.immutable.Seq;

/** Lists only the files that the rows of LIMIT, or of ORDER BY with LIMIT, can come from; without filters and deletes. */
public class FirstRows extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) {
    return node instanceof LocalLimit && ((LocalLimit) node).limitExpr() instanceof Literal;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    LocalLimit limit = (LocalLimit) node;
    LogicalPlan rows = limit.child();
    String wanted = String.valueOf(((Literal) limit.limitExpr()).value());
    while (rows instanceof Project) rows = ((Project) rows).child();
    if (rows instanceof Sort) {
      SortOrder order = (SortOrder) ((Sort) rows).order().head();
      Expression column = order.child();
      boolean isGlobal = ((Sort) rows).global();
      rows = ((Sort) rows).child();
      while (rows instanceof Project) {
        column = source(column, (Project) rows);
        rows = ((Project) rows).child();
      }
      if (!isGlobal || !(column instanceof AttributeReference) || !FileBounds.areKnown(column.dataType())) return limit;
      wanted += " " + order.direction().sql() + " " + order.nullOrdering().sql() + " " + ((Attribute) column).name();
    }
    if (!RuntimeFilters.isOwn(rows, "true")) return limit;
    LogicalRelation relation = (LogicalRelation) rows;
    return limit.transformDown(new Replaced(relation, RuntimeFilters.with(relation, "first", wanted)));
  }

  /** The expression of which a projection makes a column; null if the column is not one of the projection. */
  static Expression source(Expression column, Project project) {
    Seq projected = project.projectList();
    for (int i = 0; column instanceof AttributeReference && i < projected.size(); i++) {
      NamedExpression each = (NamedExpression) projected.apply(i);
      if (!each.exprId().equals(((Attribute) column).exprId())) continue;
      return each instanceof Alias ? ((Alias) each).child() : (Expression) each;
    }
    return null;
  }

  /** Replaces one node of a plan. */
  static class Replaced extends scala.runtime.AbstractPartialFunction {
    private final LogicalPlan before;
    private final LogicalPlan after;

    Replaced(LogicalPlan before, LogicalPlan after) {
      this.before = before;
      this.after = after;
    }

    public boolean isDefinedAt(Object node) { return node == before; }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      return isDefinedAt(node) ? after : otherwise.apply(node);
    }
  }
}
