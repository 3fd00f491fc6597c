package icefloe.sql;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/**
 * Replaces each IcefloeScan by the plan that Python makes for it, with the attribute ids that the query uses. Aggregates
 * that metadata answers are replaced first.
 */
public class PlannedScans extends Rule {
  public TreeNode apply(TreeNode plan) {
    if (plan instanceof DeleteFromTable) return plan;  // a DELETE of all rows: Spark takes the table from the scan
    Scans scans = new Scans();
    scans.merged = MergedInserts.target((LogicalPlan) plan);
    if (scans.merged != null) scans.operation = MergedInserts.write((LogicalPlan) plan).id;
    LogicalPlan answered = (LogicalPlan) ((LogicalPlan) plan).transformUp(new MetadataAggregates());
    LogicalPlan planned = Replacement.scans(answered, scans);
    if (planned == answered) return answered;
    LogicalPlan complete = (LogicalPlan) planned.transformAllExpressions(new BuildSides(scans.haveChange));
    LogicalPlan limited = (LogicalPlan) complete.transformUp(new FirstRows());
    LogicalPlan bounded = (LogicalPlan) limited.transformUp(new RuntimeFilters());
    boolean needsSizes = !scans.haveChange && !bounded.find(new IsJoin()).isEmpty();  // a row change lists files once
    return needsSizes ? FilteredSizes.of(bounded) : bounded;
  }

  private static class IsJoin extends scala.runtime.AbstractFunction1 {
    public Object apply(Object node) { return Boolean.valueOf(node instanceof Join); }
  }

  /** Replaces the scans in the plans by which Spark makes filters at run time. */
  private class BuildSides extends scala.runtime.AbstractPartialFunction {
    private final boolean areOfChange;

    BuildSides(boolean areOfChange) { this.areOfChange = areOfChange; }

    public boolean isDefinedAt(Object node) { return node instanceof DynamicPruningSubquery; }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      DynamicPruningSubquery filter = (DynamicPruningSubquery) node;
      LogicalPlan planned = (LogicalPlan) PlannedScans.this.apply(filter.buildQuery());
      return filter.withNewPlan(areOfChange ? planned : FilteredSizes.of(planned));  // as in the join: Spark reuses it
    }
  }

  private static class Scans implements Replacement.Nodes {
    AttributeSet merged;  // the columns of the table of a MERGE that only inserts
    String operation;
    boolean haveChange = false;  // whether one of the scans is that of a row change

    public boolean isReplaced(Object node) {
      return node instanceof DataSourceV2ScanRelation
          && ((DataSourceV2ScanRelation) node).scan() instanceof IcefloeScan;
    }

    public LogicalPlan replaced(Object node) {
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
      IcefloeScan scan = (IcefloeScan) relation.scan();
      boolean isOfMerge = merged != null && relation.outputSet().subsetOf(merged);
      haveChange |= isOfMerge || scan.operation != null;
      return renamed(KeptPlans.plan(isOfMerge ? new IcefloeScan(scan, operation) : scan), relation.output());
    }
  }

  /** The rows with the names and attribute ids of other attributes, in the same order. */
  static Project renamed(LogicalPlan rows, Seq attributes) {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < attributes.size(); i++) {
      Attribute wanted = (Attribute) attributes.apply(i);
      Attribute column = (Attribute) rows.output().apply(i);
      columns.add(new Alias(column, wanted.name(), wanted.exprId(), wanted.qualifier(),
          scala.Option.apply(wanted.metadata()), Json.seq()));
    }
    return new Project(Json.seq((java.util.List) columns), rows);
  }
}
