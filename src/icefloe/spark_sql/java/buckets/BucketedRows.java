package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** One side of a join of buckets: rows of a table, of which each partition of Spark shall have those of one bucket. */
public class BucketedRows extends LogicalPlan {
  final LogicalPlan child;
  final Seq keys;  // of the join
  final int count;

  public BucketedRows(LogicalPlan child, Seq keys, int count) {
    this.child = child;
    this.keys = keys;
    this.count = count;
  }

  public Seq output() { return child.output(); }
  public Seq children() { return Json.seq((Object) child); }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new BucketedRows((LogicalPlan) children.apply(0), keys, count);
  }

  public String nodeName() { return "BucketedRows"; }
  public int productArity() { return 3; }
  public Object productElement(int n) { return n == 0 ? child : n == 1 ? (Object) keys : (Object) Integer.valueOf(count); }
  public boolean canEqual(Object other) { return other instanceof BucketedRows; }
}
