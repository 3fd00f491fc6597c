package icefloe.sql;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlanInfo$;

/**
 * The join of a row change that needs only those rows of the table whose keys a source has. Python evaluates and keeps
 * the source, and reduces the table by its keys, so files are skipped and fewer commits conflict. The join returns the
 * same rows as before.
 */
public class MergeJoin {
  private final LogicalPlan query;
  private final Join join;
  private final boolean isTargetLeft;
  private final AttributeSet columns;  // of the table
  private final LogicalPlan target;  // the rows of the table, as near to the scan as possible
  private final LogicalPlan source;

  private MergeJoin(LogicalPlan query, Join join, boolean isTargetLeft, AttributeSet written) {
    this.query = query;
    this.join = join;
    this.isTargetLeft = isTargetLeft;
    source = isTargetLeft ? join.right() : join.left();
    LogicalPlan node = isTargetLeft ? join.left() : join.right();
    columns = node.outputSet().intersect(written);
    // Spark pushes no filter below the numbers that it gives to rows for its check of cardinality.
    while (node instanceof Project || node instanceof Filter) {
      LogicalPlan child = (LogicalPlan) node.children().head();
      if (!columns.subsetOf(child.outputSet())) break;
      node = child;
    }
    target = node;
  }

  /** The join of a query that reads the columns to be written; null if all rows of the table are needed. */
  static MergeJoin find(LogicalPlan query, AttributeSet written) {
    LogicalPlan node = query;
    while (!(node instanceof Join)) {
      if (node.children().size() != 1) return null;
      node = (LogicalPlan) node.children().head();
    }
    Join join = (Join) node;
    boolean isLeft = join.left().outputSet().intersect(written).nonEmpty();
    boolean isRight = join.right().outputSet().intersect(written).nonEmpty();
    if (isLeft == isRight || !dropsUnmatched(join.joinType(), isLeft)) return null;
    return new MergeJoin(query, join, isLeft, written);
  }

  /** Whether rows of the table that match no row of the source do not change the result. */
  private static boolean dropsUnmatched(JoinType type, boolean isTargetLeft) {
    if (!isTargetLeft) return type == LeftAnti$.MODULE$;
    return type == Inner$.MODULE$ || type == RightOuter$.MODULE$ || type == LeftSemi$.MODULE$;
  }

  public Join join() { return join; }

  /** Whether rows of the source without a match are in the result. */
  public boolean isOuter() { return join.joinType() != Inner$.MODULE$ && join.joinType() != LeftSemi$.MODULE$; }

  /** The columns of the table that the join reads. */
  public AttributeSet columns() { return columns; }

  public AttributeSet sourceColumns() { return source.outputSet(); }

  /** The rows of the table, for Python to reduce. */
  public Dataset target() { return frame(target); }

  /** The rows of the source, for Python to keep. */
  public Dataset source() { return frame(source); }

  /** The rows of the source that are kept, with the attributes that the join uses; their size is known once they are read. */
  public Dataset kept(Dataset rows) {
    LogicalPlan plan = frame(rows.queryExecution().analyzed()).queryExecution().withCachedData();
    boolean isSame = plan.outputSet().subsetOf(source.outputSet()) && plan.output().size() == source.output().size();
    return frame(isSame ? plan : PlannedScans.renamed(plan, source.output()));
  }

  /** The rows of the query with other plans of the table and the source. */
  public Dataset rows(Dataset table, Dataset kept) {
    LogicalPlan side = isTargetLeft ? join.left() : join.right();
    LogicalPlan ours = replaced(side, target, table.queryExecution().analyzed());
    LogicalPlan theirs = kept.queryExecution().analyzed();
    Join joined = new Join(
        isTargetLeft ? ours : theirs, isTargetLeft ? theirs : ours, join.joinType(), join.condition(), join.hint());
    Dataset result = frame(replaced(query, join, joined));
    // Nodes of Spark make their metrics when they are asked for them, which tasks cannot do.
    SparkPlanInfo$.MODULE$.fromSparkPlan(result.queryExecution().executedPlan());
    return session().internalCreateDataFrame(result.queryExecution().toRdd(), query.schema(), false);
  }

  /** A plan with another plan in place of a node below it; the nodes between them have one child each. */
  private static LogicalPlan replaced(LogicalPlan plan, LogicalPlan node, LogicalPlan other) {
    if (plan == node) return other;
    LogicalPlan child = replaced((LogicalPlan) plan.children().head(), node, other);
    return (LogicalPlan) plan.withNewChildren(Json.seq((Object) child));
  }

  private static SparkSession session() { return (SparkSession) SparkSession.active(); }

  private static Dataset frame(LogicalPlan plan) {
    plan.setAnalyzed();
    return org.apache.spark.sql.classic.Dataset.ofRows(session(), plan);
  }
}
