package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.apache.spark.unsafe.Platform;

/** Calls into Python. Each attached catalog has one Python object, found here by the id in the catalog's options. */
public class Peer {
  public static final Map peers = new ConcurrentHashMap();  // id -> BiFunction(call as JSON text, JVM object)

  final String id;
  final String catalog;

  public Peer(String id, String catalog) {
    this.id = id;
    this.catalog = catalog;
  }

  /** The value that Python returns, as JSON. Errors of Python are thrown as exceptions of Spark. */
  public JsonNode ask(ObjectNode call) { return (JsonNode) ask(call, null); }

  /** The value that Python returns: JSON, or an object of the JVM. The call may pass an object of the JVM, too. */
  public Object ask(ObjectNode call, Object with) {
    BiFunction python = (BiFunction) peers.get(id);
    if (python == null) {
      Platform.throwException(Failures.analysis(
          "catalog " + catalog + " is not attached: call icefloe.attach(spark, \"" + catalog + "\")"));
    }
    Object answer = python.apply(call.toString(), with);
    if (answer instanceof Throwable) Platform.throwException((Throwable) answer);
    if (!(answer instanceof String)) return answer;
    JsonNode reply = Json.parsed((String) answer);
    if (Json.has(reply, "failure")) Platform.throwException(Failures.exception(Json.at(reply, "failure"), call));
    return Json.at(reply, "value");
  }

  /** The error of a session without the rules that replace the scans and writes of tables. */
  RuntimeException notPlanned() {
    return new IllegalStateException(
        "this session lacks the planning rules of icefloe: call icefloe.attach(spark, \"" + catalog + "\") in it");
  }

  public boolean equals(Object other) { return other instanceof Peer && ((Peer) other).id.equals(id); }
  public int hashCode() { return id.hashCode(); }
}
