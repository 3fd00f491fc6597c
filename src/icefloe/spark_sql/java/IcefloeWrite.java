package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.UUID;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.InsertableRelation;

/** An append or an overwrite: Spark passes the rows, aligned with the columns of the table, as a DataFrame. */
public class IcefloeWrite
    implements WriteBuilder, SupportsOverwriteV2, SupportsDynamicOverwrite, V1Write, InsertableRelation {
  final IcefloeTable table;
  final String id = UUID.randomUUID().toString();  // of the write, if it is a MERGE that only inserts
  private final ObjectNode call;

  IcefloeWrite(IcefloeTable table, LogicalWriteInfo info) {
    this.table = table;
    call = Json.call("write rows").put("handle", table.handle()).put("mode", "append");
    call.set("options", Json.object(info.options().asCaseSensitiveMap()));
  }

  ObjectNode call() { return call; }

  public WriteBuilder truncate() {
    call.put("mode", "overwrite all");
    return this;
  }

  public boolean canOverwrite(Predicate[] predicates) { return true; }

  public WriteBuilder overwrite(Predicate[] predicates) {
    call.put("mode", "overwrite").set("where", Predicates.messages(predicates));
    return this;
  }

  public WriteBuilder overwriteDynamicPartitions() {
    call.put("mode", "overwrite partitions");
    return this;
  }

  public Write build() { return this; }
  public String description() { return StreamSupport.description(table); }
  public InsertableRelation toInsertableRelation() { return this; }
  public void insert(Dataset rows, boolean overwrite) { table.peer.ask(call, rows); }
}
