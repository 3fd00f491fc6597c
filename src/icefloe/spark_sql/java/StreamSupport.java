package icefloe.sql;

import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.unsafe.Platform;

/**
 * What the classes for streams add to scans and writes. They are compiled by themselves, and Streams extends this class:
 * if Spark's classes for streams change, tables are still read, written and changed by statements.
 */
public class StreamSupport {
  public static volatile StreamSupport current = new StreamSupport();
  public static volatile String problem = null;  // why there are no streams

  /** The scan, or one that a stream can read. */
  IcefloeScan scan(IcefloeScan scan) { return scan; }

  IcefloeWrite write(IcefloeTable table, LogicalWriteInfo info) { return new IcefloeWrite(table, info); }

  /** What a scan or write of a table is called in Spark's messages, such as that it has no streams. */
  static String description(IcefloeTable table) {
    return problem == null ? "icefloe " + table.name() : problem;
  }
}
