package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;

/** Marks the write of a row change in a plan until PlannedWrites plans it. */
public class RowChangeWrite implements DeltaWriteBuilder, DeltaWrite {
  final IcefloeTable table;
  final ObjectNode call;

  RowChangeWrite(IcefloeTable table, ObjectNode call) {
    this.table = table;
    this.call = call;
  }

  public DeltaWrite build() { return this; }

  public DeltaBatchWrite toBatch() {
    throw new IllegalStateException("this session lacks the planning strategy of icefloe: call icefloe.attach(spark, \""
        + table.peer.catalog + "\") in it");
  }
}
