package icefloe.sql;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** The rows of a join of buckets, in partitions of which nothing is stated. */
public class BucketedJoinExec extends SparkPlan {
  private final SparkPlan join;

  public BucketedJoinExec(SparkPlan join) { this.join = join; }

  public Seq output() { return join.output(); }
  public Seq children() { return Json.seq((Object) join); }
  public RDD doExecute() { return join.execute(); }
  /** What executors get, which have no class of this package: they get plans as parts of others, and run none. */
  public Object writeReplace() { return join; }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new BucketedJoinExec((SparkPlan) children.apply(0));
  }
  public String nodeName() { return "BucketedJoin"; }
  public int productArity() { return 1; }
  public Object productElement(int n) { return join; }
  public boolean canEqual(Object other) { return other instanceof BucketedJoinExec; }
}
