package icefloe.sql;

import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.SchemaPruning$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/** Replaces each IcefloeScan by the plan that Python makes for it, with the attribute ids that the query uses. */
public class PlannedScans extends Rule {
  public TreeNode apply(TreeNode plan) {
    if (plan instanceof DeleteFromTable) return plan;  // a DELETE of all rows: Spark takes the table from the scan
    Replacement replacement = new Replacement();
    replacement.merged = MergedInserts.target((LogicalPlan) plan);
    if (replacement.merged != null) replacement.operation = MergedInserts.write((LogicalPlan) plan).id;
    LogicalPlan replaced = (LogicalPlan) ((LogicalPlan) plan).transformDown(replacement);
    if (!replacement.isUsed) return plan;
    return SchemaPruning$.MODULE$.apply((LogicalPlan) PushDownPredicates$.MODULE$.apply(replaced));
  }

  private static class Replacement extends scala.runtime.AbstractPartialFunction {
    boolean isUsed = false;
    AttributeSet merged;  // the columns of the table of a MERGE that only inserts
    String operation;

    public boolean isDefinedAt(Object node) {
      return StreamRows.isBatch(node) || node instanceof DataSourceV2ScanRelation
          && ((DataSourceV2ScanRelation) node).scan() instanceof IcefloeScan;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      isUsed = true;
      if (StreamRows.isBatch(node)) return StreamRows.plan((StreamingDataSourceV2ScanRelation) node);
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
      IcefloeScan scan = (IcefloeScan) relation.scan();
      if (merged != null && relation.outputSet().subsetOf(merged)) scan = scan.of(operation);
      LogicalPlan rows = KeptPlans.plan(scan);
      return renamed(rows, relation.output());
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
