package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;

/** Plans the writes for which Spark has no interface that passes a DataFrame. */
public class PlannedWrites extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    if (plan instanceof OverwritePartitionsDynamic && ((OverwritePartitionsDynamic) plan).write().isDefined()
        && ((OverwritePartitionsDynamic) plan).write().get() instanceof IcefloeWrite) {
      IcefloeWrite write = (IcefloeWrite) ((OverwritePartitionsDynamic) plan).write().get();
      return Json.seq(
          new RowsExec(planLater(((OverwritePartitionsDynamic) plan).query()), write.table, write.call()));
    }
    return Json.seq();
  }
}
