package icefloe.sql;

import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.SchemaPruning$;

/**
 * Replaces nodes of a plan. Classes of another unit cannot extend it: the compiler refuses the methods that it has added
 * to it for its superclass, which is one of Scala.
 */
public class Replacement extends scala.runtime.AbstractPartialFunction {
  /** Which nodes are replaced, and by what. */
  public interface Nodes {
    boolean isReplaced(Object node);
    LogicalPlan replaced(Object node);
  }

  private final Nodes nodes;
  private boolean isUsed = false;

  Replacement(Nodes nodes) { this.nodes = nodes; }

  public boolean isDefinedAt(Object node) { return nodes.isReplaced(node); }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    isUsed = true;
    return nodes.replaced(node);
  }

  /** The plan with scans instead of markers, to which filters are pushed and whose nested columns are pruned. */
  static LogicalPlan scans(LogicalPlan plan, Nodes markers) {
    Replacement replacement = new Replacement(markers);
    LogicalPlan replaced = (LogicalPlan) plan.transformDown(replacement);
    if (!replacement.isUsed) return plan;
    return (LogicalPlan) SchemaPruning$.MODULE$.apply((LogicalPlan) PushDownPredicates$.MODULE$.apply(replaced));
  }
}
