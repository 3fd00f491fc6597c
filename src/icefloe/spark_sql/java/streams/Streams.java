package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.UUID;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.unsafe.Platform;

/** Adds streams to scans and writes, and knows the query that runs them. */
public class Streams extends StreamSupport {
  private static final String UPSERT_KEYS = "upsert-keys";

  IcefloeScan scan(IcefloeScan scan) { return new StreamableScan(scan); }

  IcefloeWrite write(IcefloeTable table, LogicalWriteInfo info) {
    checkMode(table, info);
    boolean isKeyed = info.options().containsKey(UPSERT_KEYS);
    return isKeyed ? new IcefloeWriteByKey(table, info) : new StreamableWrite(table, info);
  }

  /**
   * The value that Python returns. A call that fails because its query was stopped throws the exception by which Spark
   * recognises that: the query then ends without an error.
   */
  static Object ask(Peer peer, ObjectNode call, Object with) {
    try {
      return peer.ask(call, with);
    } catch (Throwable error) {
      if (isStopped()) {
        InterruptedIOException interruption = new InterruptedIOException("the query was stopped");
        interruption.initCause(error);
        throw new UncheckedIOException(interruption);
      }
      Platform.throwException(error);
      return null;
    }
  }

  private static boolean isStopped() {
    StreamingQuery query = query(session().sparkContext().getLocalProperty("sql.streaming.queryId"));
    return query != null && !query.isActive();
  }

  /** Refuses update mode without keys; Spark's own message does not say what is missing. */
  private static void checkMode(IcefloeTable table, LogicalWriteInfo info) {
    StreamingQuery query = query(info.queryId());
    if (query == null || info.options().containsKey(UPSERT_KEYS)) return;
    try {
      Object mode = query.getClass().getMethod("outputMode", new Class[0]).invoke(query, new Object[0]);
      if (!"Update".equals(mode.toString())) return;
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    Platform.throwException(Failures.analysis("table " + table.name() + ": update mode replaces rows by their keys;"
        + " name the key columns in the option upsert-keys, such as .option(\"upsert-keys\", \"id\")"));
  }

  /** The running query with this id; null if the id is not one of a query. */
  private static StreamingQuery query(String id) {
    if (id == null || id.length() != 36) return null;
    return (StreamingQuery) session().sharedState().activeStreamingQueries().get(UUID.fromString(id));
  }

  static SparkSession session() { return (SparkSession) SparkSession.active(); }
}
