package icefloe.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.types.Metadata;
import scala.collection.immutable.Seq;

/** Replaces counts, minima and maxima of a table by plans that Python makes from the metadata of its files. */
public class MetadataAggregates extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) { return node instanceof Aggregate && scan((Aggregate) node) != null; }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    Aggregate aggregate = (Aggregate) node;
    ArrayNode where = conditions(aggregate.child());
    Seq stored = relation(aggregate.child()).output();
    ArrayList results = new ArrayList();  // the attributes of the plan: groups, then aggregates
    ArrayNode groups = Json.array();
    for (int i = 0; i < aggregate.groupingExpressions().size(); i++) {
      Object group = aggregate.groupingExpressions().apply(i);
      if (!(group instanceof AttributeReference)) return aggregate;
      groups.add(name((AttributeReference) group, stored));
      results.add(group);
    }
    Results functions = new Results(results, stored);
    ArrayList columns = new ArrayList();
    for (int i = 0; i < aggregate.aggregateExpressions().size(); i++) {
      columns.add(((Expression) aggregate.aggregateExpressions().apply(i)).transformUp(functions));
    }
    if (where == null || !functions.areKnown || results.isEmpty()) return aggregate;
    IcefloeScan scan = scan(aggregate);
    ObjectNode call = Json.call("plan aggregates").put("handle", scan.table.handle());
    call.set("options", Json.object(scan.options));
    call.set("where", where);
    call.set("groups", groups);
    call.set("aggregates", functions.calls);
    LogicalPlan plan = KeptPlans.aggregates(scan, call);
    if (plan == null) return aggregate;
    // Spark has evaluated projections of rows that it knows before this rule; without them no job runs.
    LogicalPlan named = evaluated(PlannedScans.renamed(plan, Json.seq((java.util.List) results)));
    return evaluated(new Project(Json.seq((java.util.List) columns), named));
  }

  private static LogicalPlan evaluated(LogicalPlan plan) {
    return (LogicalPlan) ConvertToLocalRelation$.MODULE$.apply(plan);
  }

  /** The scan whose rows are aggregated, perhaps filtered; null if they are another's, or those of a row change. */
  private static IcefloeScan scan(Aggregate aggregate) {
    LogicalPlan relation = relation(aggregate.child());
    if (!(relation instanceof DataSourceV2ScanRelation)) return null;
    Object scan = ((DataSourceV2ScanRelation) relation).scan();
    return scan instanceof IcefloeScan && ((IcefloeScan) scan).operation == null ? (IcefloeScan) scan : null;
  }

  private static LogicalPlan relation(LogicalPlan child) {
    LogicalPlan rows = rows(child);
    return rows instanceof Filter ? ((Filter) rows).child() : rows;
  }

  /** The name of a column in the table; a query may spell it in another case. */
  private static String name(AttributeReference column, Seq stored) {
    for (int i = 0; i < stored.size(); i++) {
      if (((Attribute) stored.apply(i)).exprId().equals(column.exprId())) return ((Attribute) stored.apply(i)).name();
    }
    return column.name();
  }

  /** The rows of a plan under those nodes that only choose columns. */
  private static LogicalPlan rows(LogicalPlan plan) {
    if (!(plan instanceof Project)) return plan;
    Seq columns = ((Project) plan).projectList();
    for (int i = 0; i < columns.size(); i++) if (!(columns.apply(i) instanceof AttributeReference)) return plan;
    return rows(((Project) plan).child());
  }

  /** The parts of the condition on the rows as messages; null if Spark cannot express one of them. */
  private static ArrayNode conditions(LogicalPlan child) {
    LogicalPlan rows = rows(child);
    ArrayList predicates = new ArrayList();
    if (rows instanceof Filter && !translate(((Filter) rows).condition(), predicates)) return null;
    return Predicates.messages((Predicate[]) predicates.toArray(new Predicate[0]));
  }

  private static boolean translate(Expression condition, ArrayList predicates) {
    if (condition instanceof And) {
      return translate(((And) condition).left(), predicates) && translate(((And) condition).right(), predicates);
    }
    scala.Option predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2(condition);
    if (predicate.isDefined()) predicates.add(predicate.get());
    return predicate.isDefined();
  }

  /** Replaces aggregate functions by attributes, and collects their calls. */
  private static class Results extends scala.runtime.AbstractPartialFunction {
    final ArrayNode calls = Json.array();
    boolean areKnown = true;
    private final ArrayList attributes;
    private final Seq stored;

    Results(ArrayList attributes, Seq stored) {
      this.attributes = attributes;
      this.stored = stored;
    }

    public boolean isDefinedAt(Object node) { return node instanceof AggregateExpression; }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      AggregateExpression expression = (AggregateExpression) node;
      ObjectNode call = call(expression);
      if (call == null) {
        areKnown = false;
        return expression;
      }
      AttributeReference result = new AttributeReference("result", expression.dataType(), expression.nullable(),
          Metadata.empty(), NamedExpression$.MODULE$.newExprId(), Json.seq());
      calls.add(call);
      attributes.add(result);
      return result;
    }

    private ObjectNode call(AggregateExpression expression) {
      AggregateFunction function = expression.aggregateFunction();
      String name = function instanceof Count ? "count" : function instanceof Min ? "min"
          : function instanceof Max ? "max" : null;
      boolean isPlain = expression.filter().isEmpty() && !(function instanceof Count && expression.isDistinct());
      if (name == null || !isPlain || function.children().size() != 1) return null;
      Object argument = function.children().apply(0);
      ObjectNode call = Json.object().put("function", name);
      if (argument instanceof AttributeReference) {
        return call.put("column", name((AttributeReference) argument, stored));
      }
      boolean countsRows = name.equals("count") && argument instanceof Literal && ((Literal) argument).value() != null;
      return countsRows ? call : null;
    }
  }
}
