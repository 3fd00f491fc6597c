package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/** Replaces each marker of a batch of an IcefloeStream by the rows of the batch. */
public class PlannedStreamScans extends Rule implements Replacement.Nodes {
  public TreeNode apply(TreeNode plan) { return Replacement.scans((LogicalPlan) plan, this); }

  public boolean isReplaced(Object node) {
    if (!(node instanceof StreamingDataSourceV2ScanRelation)) return false;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) node;
    return relation.stream() instanceof IcefloeStream && relation.endOffset().isDefined();
  }

  public LogicalPlan replaced(Object node) {
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) node;
    IcefloeStream stream = (IcefloeStream) relation.stream();
    Object start = relation.startOffset().isDefined() ? relation.startOffset().get() : IcefloeOffset.NOT_STARTED;
    Dataset rows = stream.rows((Offset) start, (Offset) relation.endOffset().get());
    LogicalPlan plan = rows.queryExecution().optimizedPlan();
    LogicalPlan marked = isOfFiles(plan) ? (LogicalPlan) plan.transformDown(new Replacement(new Marking(stream))) : rdd(rows, stream);
    return PlannedScans.renamed(marked, relation.output());
  }

  /** Whether a plan only reads, unites and filters files. */
  private static boolean isOfFiles(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) return true;
    if (!(plan instanceof Project || plan instanceof Filter || plan instanceof Union)) return false;
    Seq children = plan.children();
    for (int i = 0; i < children.size(); i++) {
      if (!isOfFiles((LogicalPlan) children.apply(i))) return false;
    }
    return true;
  }

  /**
   * The rows of a plan that is executed by itself. If its joins and windows were part of the plan of the stream, Spark
   * would plan them as operators that keep state from batch to batch.
   */
  private static LogicalPlan rdd(Dataset rows, SparkDataStream stream) {
    Dataset frame = Streams.session().internalCreateDataFrame(rows.queryExecution().toRdd(), rows.schema(), true);
    return marked((LogicalRDD) frame.queryExecution().analyzed(), 4, stream);
  }

  /** Marks relations as those of the stream: Spark then counts their rows in the progress of the query. */
  private static class Marking implements Replacement.Nodes {
    private final SparkDataStream stream;

    Marking(SparkDataStream stream) { this.stream = stream; }

    public boolean isReplaced(Object node) {
      return node instanceof LogicalRelation && !((LogicalRelation) node).isStreaming();
    }

    public LogicalPlan replaced(Object node) { return marked((LogicalRelation) node, 3, stream); }
  }

  /** A copy of a leaf whose constructor takes isStreaming at a place and, since Spark 4.1, the stream after it. */
  private static LogicalPlan marked(LogicalPlan leaf, int place, SparkDataStream stream) {
    Object[] arguments = new Object[leaf.productArity()];
    for (int i = 0; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
    arguments[place] = Boolean.TRUE;
    if (arguments.length > place + 1) arguments[place + 1] = scala.Option.apply(stream);
    return (LogicalPlan) leaf.makeCopy(arguments);
  }
}
