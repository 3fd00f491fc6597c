package icefloe.sql;

import java.util.ArrayList;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlanInfo$;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.LongType$;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The join of a row change that needs only those rows of the table whose keys a source has. The source is evaluated
 * first and kept. Its keys become a filter on the table, which skips files and narrows what other commits conflict with.
 * The join returns the same rows as before.
 */
public class MergeJoin {
  private final LogicalPlan query;
  private final Join join;
  private final LogicalPlan target;
  private final LogicalPlan source;
  private final ArrayList targetKeys = new ArrayList();  // columns of the table
  private final ArrayList sourceKeys = new ArrayList();  // the expressions on the source that they must equal

  private MergeJoin(LogicalPlan query, Join join, boolean isTargetLeft) {
    this.query = query;
    this.join = join;
    target = isTargetLeft ? join.left() : join.right();
    source = isTargetLeft ? join.right() : join.left();
    if (join.condition().isDefined()) addKeys((Expression) join.condition().get());
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
    MergeJoin found = new MergeJoin(query, join, isLeft);
    return found.targetKeys.isEmpty() ? null : found;
  }

  /** Whether rows of the table that match no row of the source do not change the result. */
  private static boolean dropsUnmatched(JoinType type, boolean isTargetLeft) {
    if (!isTargetLeft) return type == LeftAnti$.MODULE$;
    return type == Inner$.MODULE$ || type == RightOuter$.MODULE$ || type == LeftSemi$.MODULE$;
  }

  private void addKeys(Expression condition) {
    if (condition instanceof And) {
      addKeys(((And) condition).left());
      addKeys(((And) condition).right());
    } else if (condition instanceof EqualTo) {
      addKey(((EqualTo) condition).left(), ((EqualTo) condition).right());
      addKey(((EqualTo) condition).right(), ((EqualTo) condition).left());
    }
  }

  private void addKey(Expression ours, Expression theirs) {
    Expression column = isWidened(ours) ? ((Cast) ours).child() : ours;
    if (!(column instanceof Attribute) || !target.outputSet().contains((Attribute) column)) return;
    AttributeSet used = theirs.references();
    if (used.isEmpty() || !used.subsetOf(source.outputSet()) || !theirs.deterministic()) return;
    if (!KeyFilter.canFilter(ours.dataType())) return;
    targetKeys.add(ours);
    sourceKeys.add(theirs);
  }

  private static boolean isWidened(Expression expression) {
    return expression instanceof Cast && expression.dataType() == LongType$.MODULE$
        && ((Cast) expression).child().dataType() == IntegerType$.MODULE$;
  }

  /** The rows of the source, for Python to keep. */
  public Dataset source() { return frame(source); }

  /** The rows of the query with a source that is kept: it is read for its keys, and again for the join. */
  public Dataset rows(Dataset kept) {
    LogicalPlan keptPlan = kept.queryExecution().analyzed();
    InternalRow[] ends = KeyFilter.ends(frame(keys(cached(keptPlan))), targetKeys.size());
    InternalRow[] listed = KeyFilter.areListed(ends) ? KeyFilter.rows(frame(keys(cached(keptPlan)))) : null;
    LogicalPlan rows = cached(keptPlan);
    Expression filter = KeyFilter.of(targetKeys, ends, listed);
    boolean isReduced = join.joinType() != Inner$.MODULE$ && join.joinType() != LeftSemi$.MODULE$ && isSmall(rows);
    LogicalPlan reduced = reduced(target, filter, isReduced ? keys(rows) : null);
    boolean isTargetLeft = target == join.left();
    Join joined = new Join(
        isTargetLeft ? reduced : rows, isTargetLeft ? rows : reduced, join.joinType(), join.condition(), join.hint());
    Dataset result = frame(replaced(query, joined));
    // Nodes of Spark make their metrics when they are asked for them, which tasks cannot do.
    SparkPlanInfo$.MODULE$.fromSparkPlan(result.queryExecution().executedPlan());
    return session().internalCreateDataFrame(result.queryExecution().toRdd(), query.schema(), false);
  }

  /** The plan that reads rows that are kept, with the attributes of the source; its size is known once they are read. */
  private LogicalPlan cached(LogicalPlan plan) {
    LogicalPlan rows = frame(plan).queryExecution().withCachedData();
    boolean isSame = rows.outputSet().subsetOf(source.outputSet()) && rows.output().size() == source.output().size();
    return isSame ? rows : PlannedScans.renamed(rows, source.output());
  }

  private LogicalPlan keys(LogicalPlan rows) {
    ArrayList columns = new ArrayList();
    for (int i = 0; i < sourceKeys.size(); i++) {
      columns.add(new Alias((Expression) sourceKeys.get(i), KeyFilter.name(i), NamedExpression$.MODULE$.newExprId(),
          Json.seq(), Option.empty(), Json.seq()));
    }
    return new Project(Json.seq((java.util.List) columns), rows);
  }

  /** Adds a filter, and a semi join with keys if there are any, as near to the scan of the table as possible. */
  private LogicalPlan reduced(LogicalPlan node, Expression filter, LogicalPlan keys) {
    if (node instanceof Project || node instanceof Filter) {
      LogicalPlan child = (LogicalPlan) node.children().head();
      if (filter.references().subsetOf(child.outputSet()) && columns().subsetOf(child.outputSet())) {
        return (LogicalPlan) node.withNewChildren(Json.seq((Object) reduced(child, filter, keys)));
      }
    }
    LogicalPlan filtered = new Filter(filter, node);
    if (keys == null) return filtered;
    Expression condition = null;
    for (int i = 0; i < targetKeys.size(); i++) {
      Expression equal = new EqualTo((Expression) targetKeys.get(i), (Expression) keys.output().apply(i));
      condition = condition == null ? equal : new And(condition, equal);
    }
    return new Join(filtered, keys, LeftSemi$.MODULE$, Option.apply(condition), JoinHint$.MODULE$.NONE());
  }

  private AttributeSet columns() {
    AttributeSet columns = ((Expression) targetKeys.get(0)).references();
    for (int i = 1; i < targetKeys.size(); i++) {
      columns = columns.$plus$plus(((Expression) targetKeys.get(i)).references());
    }
    return columns;
  }

  private LogicalPlan replaced(LogicalPlan node, Join joined) {
    if (node == join) return joined;
    LogicalPlan child = replaced((LogicalPlan) node.children().head(), joined);
    return (LogicalPlan) node.withNewChildren(Json.seq((Object) child));
  }

  /** Whether Spark would broadcast the rows. */
  private static boolean isSmall(LogicalPlan rows) {
    return rows.stats().sizeInBytes().longValue() <= session().sessionState().conf().autoBroadcastJoinThreshold();
  }

  private static SparkSession session() { return (SparkSession) SparkSession.active(); }

  private static Dataset frame(LogicalPlan plan) {
    plan.setAnalyzed();
    return org.apache.spark.sql.classic.Dataset.ofRows(session(), plan);
  }
}
