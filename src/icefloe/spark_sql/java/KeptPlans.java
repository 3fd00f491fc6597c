package icefloe.sql;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.LinkedHashMap;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf$;

/** The plans of recent scans. A plan belongs to a state of the table, to a session and to the session's settings. */
public class KeptPlans {
  private static final int LIMIT = 32;
  private static final LinkedHashMap plans = new LinkedHashMap(16, 0.75f, true);  // least recently used first

  /** The plan of a scan; that of a row change is not kept, as Python records what it reads. */
  static LogicalPlan plan(IcefloeScan scan) {
    SparkSession session = (SparkSession) SparkSession.active();
    Peer peer = scan.table.peer;
    ObjectNode call = scan.call();
    if (scan.operation != null) return (LogicalPlan) peer.ask(call, session);
    LogicalPlan plan = kept(peer, call, session);
    boolean readsInPython = !plan.find(new ReadsInPython()).isEmpty();
    // Spark passes no filter through Python; for its own readers one plan serves all filters.
    return readsInPython && scan.filters.size() > 0 ? kept(peer, scan.filtered(call), session) : plan;
  }

  /** The plan of aggregates of a scan; null if Python leaves them to Spark. */
  static LogicalPlan aggregates(IcefloeScan scan, ObjectNode call) {
    return kept(scan.table.peer, call, (SparkSession) SparkSession.active());
  }

  private static class ReadsInPython extends scala.runtime.AbstractFunction1 {
    public Object apply(Object node) { return Boolean.valueOf(node instanceof MapInArrow); }
  }

  private static LogicalPlan kept(Peer peer, ObjectNode call, SparkSession session) {
    String key = peer.id + " " + System.identityHashCode(session) + " "
        + SQLConf$.MODULE$.get().getAllConfs().hashCode() + " " + call.toString();
    LogicalPlan kept = get(key);
    if (kept != null) return kept;
    Object plan = peer.ask(call, session);
    if (!(plan instanceof LogicalPlan)) return null;
    put(key, (LogicalPlan) plan);
    return (LogicalPlan) plan;
  }

  private static synchronized LogicalPlan get(String key) { return (LogicalPlan) plans.get(key); }

  private static synchronized void put(String key, LogicalPlan plan) {
    plans.put(key, plan);
    if (plans.size() > LIMIT) plans.remove(plans.keySet().iterator().next());
  }

  /** Removes the plans of a catalog that is detached. */
  public static synchronized void remove(String id) {
    Iterator keys = plans.keySet().iterator();
    while (keys.hasNext()) {
      if (((String) keys.next()).startsWith(id + " ")) keys.remove();
    }
  }
}
