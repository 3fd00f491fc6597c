package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/** A stream that reads a table or its changes: Python chooses the offsets, PlannedStreamScans plans the rows. */
public class IcefloeStream implements MicroBatchStream, SupportsTriggerAvailableNow {
  private final IcefloeTable table;
  private final Map options;
  private boolean isBounded = false;
  private String lastSnapshot = null;  // of a bounded stream; null if the table was empty

  IcefloeStream(IcefloeTable table, Map options) {
    this.table = table;
    this.options = options;
  }

  public Offset initialOffset() { return IcefloeOffset.NOT_STARTED; }
  public Offset deserializeOffset(String json) { return new IcefloeOffset(json); }

  public Offset latestOffset() { return latestOffset(IcefloeOffset.NOT_STARTED, ReadLimit.allAvailable()); }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    if (isBounded && lastSnapshot == null) return null;
    ObjectNode call = call("latest offset").put("start", (start == null ? IcefloeOffset.NOT_STARTED : start).json());
    call.put("until", lastSnapshot).put("is_unlimited", limit.equals(ReadLimit.allAvailable()));
    JsonNode offset = (JsonNode) Streams.ask(table.peer, call, null);
    return offset.isNull() ? null : new IcefloeOffset(offset.toString());
  }

  /** A limit that is not allAvailable(), with which Trigger.Once asks: Python knows the limits of the options. */
  public ReadLimit getDefaultReadLimit() { return ReadLimit.maxFiles(Integer.MAX_VALUE); }

  public void prepareForTriggerAvailableNow() {
    JsonNode newest = (JsonNode) Streams.ask(table.peer, call("newest snapshot"), null);
    isBounded = true;
    lastSnapshot = newest.isNull() ? null : newest.asText();
  }

  /** The rows of a batch. */
  Dataset rows(Offset start, Offset end) {
    ObjectNode call = call("plan batch").put("start", start.json()).put("end", end.json());
    return (Dataset) Streams.ask(table.peer, call, Streams.session());
  }

  private ObjectNode call(String name) {
    ObjectNode call = Json.call(name).put("handle", table.handle());
    call.set("options", Json.object(options));
    return call;
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) { throw table.peer.notPlanned(); }
  public PartitionReaderFactory createReaderFactory() { throw table.peer.notPlanned(); }
  public void commit(Offset end) { }
  public void stop() { }
  public String toString() { return "icefloe " + table.name(); }
}
