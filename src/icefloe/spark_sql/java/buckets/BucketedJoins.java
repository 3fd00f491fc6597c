package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.collection.immutable.Seq;

/**
 * Joins two tables without a shuffle if both have the same number of buckets of the keys, and all their files are in
 * these buckets. A side that is small enough is left to a broadcast, and buckets that are larger than what a task reads
 * to a shuffle.
 */
public class BucketedJoins extends Rule {
  public TreeNode apply(TreeNode plan) {
    if (BucketedExec.FILES == null || !SQLConf$.MODULE$.get().v2BucketingEnabled()) return plan;
    if (plan instanceof WriteDelta || MergedInserts.target((LogicalPlan) plan) != null) return plan;  // see MergeJoin
    return ((LogicalPlan) plan).transformUp(new Joins());
  }

  private static class Joins extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Join && !(((Join) node).left() instanceof BucketedRows);
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      Join join = (Join) node;
      scala.Option compared = ExtractEquiJoinKeys$.MODULE$.unapply(join);
      if (compared.isEmpty()) return join;
      Seq leftKeys = (Seq) ((scala.Product) compared.get()).productElement(1);
      Seq rightKeys = (Seq) ((scala.Product) compared.get()).productElement(2);
      for (int i = 0; i < leftKeys.size(); i++) {
        Side left = Side.of(join.left(), (Expression) leftKeys.apply(i));
        Side right = Side.of(join.right(), (Expression) rightKeys.apply(i));
        if (left == null || right == null || left.count != right.count || !areWorthwhile(left, right)) continue;
        ArrayList children = new ArrayList();
        children.add(new BucketedRows(left.bucketed(), leftKeys, left.count));
        children.add(new BucketedRows(right.bucketed(), rightKeys, right.count));
        return new BucketedJoin((LogicalPlan) join.withNewChildren(Json.seq((java.util.List) children)));
      }
      return join;
    }

    private static boolean areWorthwhile(Side left, Side right) {
      SQLConf conf = SQLConf$.MODULE$.get();
      long smaller = Math.min(left.size(), right.size());
      long larger = Math.max(left.size(), right.size());
      return smaller > conf.autoBroadcastJoinThreshold() && larger / left.count <= conf.filesMaxPartitionBytes();
    }
  }

  /** One side of a join: projections and filters of the files of a table. */
  private static class Side {
    private final LogicalPlan plan;
    private final LogicalRelation relation;
    private final String field;  // the id of the partition field
    final int count;

    private Side(LogicalPlan plan, LogicalRelation relation, String field, int count) {
      this.plan = plan;
      this.relation = relation;
      this.field = field;
      this.count = count;
    }

    /** The side whose column, a key of the join, has buckets; null if it has none, or the side is another plan. */
    static Side of(LogicalPlan plan, Expression key) {
      LogicalPlan rows = plan;
      Expression column = key;
      while (rows instanceof Project || rows instanceof Filter) {
        if (rows instanceof Project) column = FirstRows.source(column, (Project) rows);
        rows = (LogicalPlan) rows.children().head();
      }
      if (!(column instanceof AttributeReference) || !RuntimeFilters.isOwn(rows, "true")) return null;
      scala.Option known = ((HadoopFsRelation) ((LogicalRelation) rows).relation()).options().get("icefloe.buckets");
      JsonNode buckets = known.isEmpty() ? Json.array() : Json.parsed((String) known.get());
      for (int i = 0; i < buckets.size(); i++) {
        JsonNode each = Json.at(buckets, i);
        if (!Json.at(each, 0).asText().equals(((Attribute) column).name())) continue;
        return new Side(plan, (LogicalRelation) rows, Json.at(each, 2).asText(), Json.at(each, 1).asInt());
      }
      return null;
    }

    long size() { return plan.stats().sizeInBytes().toLong(); }

    LogicalPlan bucketed() {
      LogicalRelation changed = RuntimeFilters.withBucket(relation, field);
      return (LogicalPlan) plan.transformDown(new FirstRows.Replaced(relation, changed));
    }
  }
}
