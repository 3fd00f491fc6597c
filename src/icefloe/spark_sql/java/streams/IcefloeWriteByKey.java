package icefloe.sql;

import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/** A write with the option upsert-keys: Spark gives update mode only to writes that implement this interface. */
public class IcefloeWriteByKey extends StreamableWrite implements SupportsStreamingUpdateAsAppend {
  IcefloeWriteByKey(IcefloeTable table, LogicalWriteInfo info) { super(table, info); }
}
