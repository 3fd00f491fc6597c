package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** Passes the rows of a physical plan to Python as a DataFrame, with a call. */
public class RowsExec extends V2CommandExec {
  private final SparkPlan child;
  private final IcefloeTable table;
  private final ObjectNode call;
  private final LogicalPlan relation;
  private final MergeJoin join;

  /**
   * The relation is that of the table: what Spark has cached of it is out of date after the call. If there is a join,
   * Python gets it instead of the rows, keeps its source, and takes the rows from it.
   */
  public RowsExec(SparkPlan child, IcefloeTable table, ObjectNode call, LogicalPlan relation, MergeJoin join) {
    this.child = child;
    this.table = table;
    this.call = call;
    this.relation = relation;
    this.join = join;
  }

  public Seq run() {
    if (join == null) {
      table.peer.ask(call, session().internalCreateDataFrame(child.execute(), child.schema(), false));
    } else {
      table.peer.ask(call.deepCopy().put("has_join", true), join);
    }
    session().sharedState().cacheManager().recacheByPlan(session(), relation);
    return Json.seq();
  }

  public Seq output() { return Json.seq(); }
  public Seq children() { return Json.seq((Object) child); }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new RowsExec((SparkPlan) children.apply(0), table, call, relation, join);
  }

  public String nodeName() { return "Icefloe " + Json.text(call, "call") + " " + table.name(); }
  public int productArity() { return 5; }

  public Object productElement(int n) {
    if (n == 0) return child;
    return n == 1 ? (Object) table : n == 2 ? (Object) call : n == 3 ? (Object) relation : (Object) join;
  }

  public boolean canEqual(Object other) { return other instanceof RowsExec; }
}
