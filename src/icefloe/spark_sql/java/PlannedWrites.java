package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.Seq;

/** Plans the writes for which Spark has no interface that passes a DataFrame. */
public class PlannedWrites extends SparkStrategy {
  public Seq apply(LogicalPlan plan) {
    if (plan instanceof WriteDelta) return changed((WriteDelta) plan);
    if (MergedInserts.target(plan) != null) return merged((V2WriteCommand) plan);
    if (!(plan instanceof OverwritePartitionsDynamic)) return Json.seq();
    OverwritePartitionsDynamic overwrite = (OverwritePartitionsDynamic) plan;
    if (!overwrite.write().isDefined() || !(overwrite.write().get() instanceof IcefloeWrite)) return Json.seq();
    IcefloeWrite write = (IcefloeWrite) overwrite.write().get();
    return rows(overwrite.query(), write.table, write.call(), MergedInserts.written(overwrite), null);
  }

  private Seq changed(WriteDelta plan) {
    if (!plan.write().isDefined() || !(plan.write().get() instanceof RowChangeWrite)) return Json.seq();
    RowChangeWrite write = (RowChangeWrite) plan.write().get();
    ObjectNode call = write.call.deepCopy();
    call.put("depends_on_kept_rows", MergedInserts.dependOnKeptRows(plan.query()));
    call.put("is_deterministic", plan.query().deterministic());
    LogicalPlan table = (LogicalPlan) plan.originalTable();
    return rows(plan.query(), write.table, call, table, MergeJoin.find(plan.query(), table.outputSet()));
  }

  private Seq merged(V2WriteCommand plan) {
    IcefloeWrite write = MergedInserts.write((LogicalPlan) plan);
    ObjectNode call = Json.call("change rows").put("handle", write.table.handle()).put("operation", write.id);
    call.put("command", "MERGE").put("depends_on_kept_rows", true).put("is_deterministic", true);
    LogicalPlan table = MergedInserts.written(plan);
    return rows(plan.query(), write.table, call, table, MergeJoin.find(plan.query(), table.outputSet()));
  }

  private Seq rows(LogicalPlan query, IcefloeTable table, ObjectNode call, LogicalPlan relation, MergeJoin join) {
    return Json.seq((Object) new RowsExec(planLater(query), table, call, relation, join));
  }
}
