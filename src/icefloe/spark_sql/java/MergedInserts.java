package icefloe.sql;

import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.immutable.Seq;

/** What a MERGE inserts, and which rows of the table decide about it. */
public class MergedInserts {
  /**
   * The columns of the table in a MERGE with only NOT MATCHED clauses; null for another plan. Spark 4.1 makes an append
   * of it, whose query reads the very relation that is written; an INSERT reads another one.
   */
  static AttributeSet target(LogicalPlan plan) {
    if (!(plan instanceof AppendData) && !"InsertOnlyMerge".equals(plan.nodeName())) return null;
    LogicalPlan query = (LogicalPlan) optional(plan, LogicalPlan.class);
    if (query == null || write(plan) == null) return null;
    AttributeSet written = written((V2WriteCommand) plan).outputSet();
    return reads(query, written) ? written : null;
  }

  /** The write of a plan; null if it is not one of ours. */
  static IcefloeWrite write(LogicalPlan plan) { return (IcefloeWrite) optional(plan, IcefloeWrite.class); }

  /** The value of a class that an optional field of a plan has, or null: Spark 4.1 lacks the class InsertOnlyMerge. */
  private static Object optional(LogicalPlan plan, Class kind) {
    for (int i = 0; i < plan.productArity(); i++) {
      Object field = plan.productElement(i);
      if (!(field instanceof scala.Option) || ((scala.Option) field).isEmpty()) continue;
      if (kind.isInstance(((scala.Option) field).get())) return ((scala.Option) field).get();
    }
    return null;
  }

  /** The relation of a write, by the interface: classes of Spark 4.2 have two methods table(), which is ambiguous. */
  static LogicalPlan written(V2WriteCommand write) { return (LogicalPlan) write.table(); }

  private static boolean reads(LogicalPlan plan, AttributeSet columns) {
    if (plan instanceof DataSourceV2Relation) return plan.outputSet().intersect(columns).nonEmpty();
    Seq children = plan.children();
    for (int i = 0; i < children.size(); i++) {
      if (reads((LogicalPlan) children.apply(i), columns)) return true;
    }
    return false;
  }

  /** Whether a row of the table that a MERGE keeps as it is may be the reason that a row is not inserted. */
  static boolean dependOnKeptRows(LogicalPlan query) {
    if (query instanceof MergeRows) {
      MergeRows merge = (MergeRows) query;
      return !merge.notMatchedInstructions().isEmpty() && !changesEveryMatch(merge.matchedInstructions());
    }
    Seq children = query.children();
    for (int i = 0; i < children.size(); i++) {
      if (dependOnKeptRows((LogicalPlan) children.apply(i))) return true;
    }
    return false;
  }

  private static boolean changesEveryMatch(Seq instructions) {
    for (int i = 0; i < instructions.size(); i++) {
      Object condition = ((MergeRows.Instruction) instructions.apply(i)).condition();
      if (condition instanceof Literal && Boolean.TRUE.equals(((Literal) condition).value())) return true;
    }
    return false;
  }
}
