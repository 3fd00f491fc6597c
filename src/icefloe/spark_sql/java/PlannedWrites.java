package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;

/** Plans the writes for which Spark has no interface that passes a DataFrame. */
public class PlannedWrites extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    if (!(plan instanceof OverwritePartitionsDynamic)) return Json.seq();
    OverwritePartitionsDynamic overwrite = (OverwritePartitionsDynamic) plan;
    if (!overwrite.write().isDefined() || !(overwrite.write().get() instanceof IcefloeWrite)) return Json.seq();
    IcefloeWrite write = (IcefloeWrite) overwrite.write().get();
    LogicalPlan relation = (LogicalPlan) overwrite.table();
    return Json.seq((Object) new RowsExec(planLater(overwrite.query()), write.table, write.call(), relation));
  }
}
