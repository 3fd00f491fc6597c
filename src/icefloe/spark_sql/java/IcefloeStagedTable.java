package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** A table that is created or replaced by its first write, or without rows when Spark commits it. */
public class IcefloeStagedTable extends IcefloeTable implements StagedTable {
  IcefloeStagedTable(Peer peer, JsonNode description) { super(peer, description); }

  public void commitStagedChanges() { peer.ask(Json.call("commit staged").put("handle", handle())); }
  public void abortStagedChanges() { peer.ask(Json.call("abort staged").put("handle", handle())); }

  /** None: from Spark 4.2 on, two interfaces of this class have defaults of this method. */
  public CustomTaskMetric[] reportDriverMetrics() { return new CustomTaskMetric[0]; }
}
