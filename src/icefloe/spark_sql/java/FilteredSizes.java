package icefloe.sql;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.DataSourceUtils$;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * Gives each relation of files under a filter the size of the files that the filter leaves, by which Spark chooses joins.
 * Spark asks for the same files again when it makes the physical plan; Python keeps the answer.
 */
public class FilteredSizes extends scala.runtime.AbstractPartialFunction {
  static LogicalPlan of(LogicalPlan plan) { return (LogicalPlan) plan.transformUp(new FilteredSizes()); }

  public boolean isDefinedAt(Object node) {
    return node instanceof Filter && RuntimeFilters.isOwn(((Filter) node).child(), null);
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    Filter filter = (Filter) node;
    ArrayList conditions = new ArrayList();
    collect(filter.condition(), conditions);
    if (conditions.isEmpty()) return filter;
    LogicalRelation relation = (LogicalRelation) filter.child();
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    Tuple2 parts = DataSourceUtils$.MODULE$.getPartitionFiltersAndDataFilters(
        files.partitionSchema(), Json.seq((List) conditions));
    Seq directories = files.location().listFiles((Seq) parts._1(), (Seq) parts._2());
    LogicalRelation sized = RuntimeFilters.with(relation, "size", Long.valueOf(size(directories)));
    return new Filter(filter.condition(), sized);
  }

  /** The parts of a condition that are known before the query runs. */
  private static void collect(Expression condition, List conditions) {
    if (condition instanceof And) {
      collect(((And) condition).left(), conditions);
      collect(((And) condition).right(), conditions);
    } else if (condition.deterministic() && !SubqueryExpression$.MODULE$.hasSubquery(condition)) {
      conditions.add(condition);
    }
  }

  private static long size(Seq directories) {
    long size = 0;
    for (int i = 0; i < directories.size(); i++) {
      scala.collection.Iterator files = ((PartitionDirectory) directories.apply(i)).files().iterator();
      while (files.hasNext()) size += ((FileStatusWithMetadata) files.next()).getLen();
    }
    return size;
  }
}
