package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.rdd.RDD;
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

  public RowsExec(SparkPlan child, IcefloeTable table, ObjectNode call) {
    this.child = child;
    this.table = table;
    this.call = call;
  }

  public Seq run() {
    RDD rows = child.execute();
    table.peer.ask(call, session().internalCreateDataFrame(rows, child.schema(), false));
    return Json.seq();
  }

  public Seq output() { return Json.seq(); }
  public Seq children() { return Json.seq((Object) child); }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new RowsExec((SparkPlan) children.apply(0), table, call);
  }

  public String nodeName() { return "Icefloe " + Json.text(call, "call") + " " + table.name(); }
  public int productArity() { return 3; }
  public Object productElement(int n) { return n == 0 ? (Object) child : n == 1 ? (Object) table : (Object) call; }
  public boolean canEqual(Object other) { return other instanceof RowsExec; }
}
