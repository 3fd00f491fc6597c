package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** Marks the write of a batch of a stream in a plan until PlannedStreamWrites replaces it by StreamBatchExec. */
public class IcefloeStreamWrite implements StreamingWrite {
  final IcefloeTable table;
  private final ObjectNode write;

  IcefloeStreamWrite(IcefloeTable table, ObjectNode write) {
    this.table = table;
    this.write = write;
  }

  /** The call that commits a batch. */
  ObjectNode call(String query, String batch) {
    ObjectNode call = Json.call("write batch").put("handle", table.handle());
    call.put("query", query).put("batch", Long.parseLong(batch)).put("mode", Json.text(write, "mode"));
    call.set("options", Json.at(write, "options"));
    return call;
  }

  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    throw table.peer.notPlanned();
  }

  public void commit(long batch, WriterCommitMessage[] messages) { throw table.peer.notPlanned(); }
  public void abort(long batch, WriterCommitMessage[] messages) { }
  public String toString() { return "icefloe " + table.name(); }
}
