package icefloe.sql;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;

/** The rows of a batch of an IcefloeStream, in the place of the marker in its plan. */
public class StreamRows {
  static boolean isBatch(Object node) {
    if (!(node instanceof StreamingDataSourceV2ScanRelation)) return false;
    StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) node;
    return relation.stream() instanceof IcefloeStream && relation.endOffset().isDefined();
  }

  static LogicalPlan plan(StreamingDataSourceV2ScanRelation relation) {
    IcefloeStream stream = (IcefloeStream) relation.stream();
    Object start = relation.startOffset().isDefined() ? relation.startOffset().get() : IcefloeOffset.NOT_STARTED;
    LogicalPlan rows = stream.rows((Offset) start, (Offset) relation.endOffset().get());
    return PlannedScans.renamed((LogicalPlan) rows.transformDown(new Marking(stream)), relation.output());
  }

  /** Marks relations as those of the stream: Spark then counts their rows in the progress of the query. */
  private static class Marking extends scala.runtime.AbstractPartialFunction {
    private final SparkDataStream stream;

    Marking(SparkDataStream stream) { this.stream = stream; }

    public boolean isDefinedAt(Object node) {
      return node instanceof LogicalRelation && !((LogicalRelation) node).isStreaming();
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      LogicalRelation relation = (LogicalRelation) node;
      Object[] arguments = new Object[relation.productArity()];
      for (int i = 0; i < arguments.length; i++) arguments[i] = relation.productElement(i);
      arguments[3] = Boolean.TRUE;  // isStreaming
      if (arguments.length > 4) arguments[4] = scala.Option.apply(stream);  // since Spark 4.1
      return relation.makeCopy(arguments);
    }
  }
}
