package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;

/** Plans joins of buckets, and their sides. */
public class PlannedBuckets extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    if (plan instanceof BucketedJoin) {
      return Json.seq((Object) new BucketedJoinExec(planLater(((BucketedJoin) plan).join)));
    }
    if (!(plan instanceof BucketedRows)) return Json.seq();
    BucketedRows rows = (BucketedRows) plan;
    return Json.seq((Object) new BucketedExec(planLater(rows.child), rows.keys, rows.count));
  }
}
