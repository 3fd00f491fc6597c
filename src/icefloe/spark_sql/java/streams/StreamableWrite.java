package icefloe.sql;

import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** A write whose rows may be those of a stream. */
public class StreamableWrite extends IcefloeWrite {
  StreamableWrite(IcefloeTable table, LogicalWriteInfo info) { super(table, info); }

  public StreamingWrite toStreaming() { return new IcefloeStreamWrite(table, call()); }
}
