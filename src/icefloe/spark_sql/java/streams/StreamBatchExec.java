package icefloe.sql;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** Passes the rows of a batch of a stream to Python as a DataFrame, with the query and the number of the batch. */
public class StreamBatchExec extends V2CommandExec {
  private final SparkPlan child;
  private final IcefloeStreamWrite write;

  public StreamBatchExec(SparkPlan child, IcefloeStreamWrite write) {
    this.child = child;
    this.write = write;
  }

  public Seq run() {
    String query = sparkContext().getLocalProperty("sql.streaming.queryId");
    String batch = sparkContext().getLocalProperty("streaming.sql.batchId");
    RDD rows = child.execute();
    Object frame = session().internalCreateDataFrame(rows, child.schema(), false);
    Streams.ask(write.table.peer, write.call(query, batch), frame);
    return Json.seq();
  }

  public Seq output() { return Json.seq(); }
  public Seq children() { return Json.seq((Object) child); }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new StreamBatchExec((SparkPlan) children.apply(0), write);
  }

  public String nodeName() { return "Icefloe write batch " + write.table.name(); }
  public int productArity() { return 2; }
  public Object productElement(int n) { return n == 0 ? (Object) child : (Object) write; }
  public boolean canEqual(Object other) { return other instanceof StreamBatchExec; }
}
