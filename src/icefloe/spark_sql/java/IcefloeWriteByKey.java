package icefloe.sql;

import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/**
 * A write with the option upsert-keys: Spark gives update mode only to writes that implement this interface. Classes are
 * defined in the order of their names, so the name sorts after that of the class that this one extends.
 */
public class IcefloeWriteByKey extends IcefloeWrite implements SupportsStreamingUpdateAsAppend {
  IcefloeWriteByKey(IcefloeTable table, LogicalWriteInfo info) { super(table, info); }
}
