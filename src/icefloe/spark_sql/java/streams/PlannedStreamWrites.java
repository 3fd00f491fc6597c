package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import scala.collection.immutable.Seq;

/** Plans the write of a batch of a stream. */
public class PlannedStreamWrites extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    if (!(plan instanceof WriteToDataSourceV2)) return Json.seq();
    WriteToDataSourceV2 command = (WriteToDataSourceV2) plan;
    if (!(command.batchWrite() instanceof MicroBatchWrite)) return Json.seq();
    StreamingWrite write = ((MicroBatchWrite) command.batchWrite()).writeSupport();
    if (!(write instanceof IcefloeStreamWrite)) return Json.seq();
    return Json.seq((Object) new StreamBatchExec(planLater(command.query()), (IcefloeStreamWrite) write));
  }
}
