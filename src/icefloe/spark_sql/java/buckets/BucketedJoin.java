package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** A join of buckets. What is above it does not learn how its rows are partitioned. */
public class BucketedJoin extends LogicalPlan {
  final LogicalPlan join;

  public BucketedJoin(LogicalPlan join) { this.join = join; }

  public Seq output() { return join.output(); }
  public Seq children() { return Json.seq((Object) join); }
  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new BucketedJoin((LogicalPlan) children.apply(0));
  }
  public String nodeName() { return "BucketedJoin"; }
  public int productArity() { return 1; }
  public Object productElement(int n) { return join; }
  public boolean canEqual(Object other) { return other instanceof BucketedJoin; }
}
