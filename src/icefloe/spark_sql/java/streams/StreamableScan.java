package icefloe.sql;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;

/** A scan that a stream can read too. */
public class StreamableScan extends IcefloeScan {
  StreamableScan(IcefloeScan scan) { super(scan, scan.operation); }

  public MicroBatchStream toMicroBatchStream(String checkpoint) { return new IcefloeStream(table, options); }
}
