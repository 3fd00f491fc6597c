package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.QueryExecutionException;

/** The exception of Spark for an error of Python, by its kind and by the names in the call. */
public class Failures {
  static Throwable exception(JsonNode failure, JsonNode call) {
    String kind = Json.text(failure, "kind");
    String message = Json.text(failure, "message");
    String[] namespace = Json.has(call, "namespace") ? Json.texts(Json.at(call, "namespace")) : null;
    String name = Json.text(call, "name");
    if (namespace != null) {
      boolean isAboutNewName = Json.has(call, "new_name") && !"NoSuchTable".equals(kind);
      if (isAboutNewName) {
        namespace = Json.texts(Json.at(call, "new_namespace"));
        name = Json.text(call, "new_name");
      }
      if ("NoSuchTable".equals(kind) && name != null) return new NoSuchTableException(Identifier.of(namespace, name));
      if ("NoSuchNamespace".equals(kind)) return new NoSuchNamespaceException(namespace);
      if ("NamespaceNotEmpty".equals(kind)) return new NonEmptyNamespaceException(namespace);
      if ("AlreadyExists".equals(kind)) {
        if (name == null) return new NamespaceAlreadyExistsException(namespace);
        return new TableAlreadyExistsException(Identifier.of(namespace, name));
      }
    }
    if ("execution".equals(kind)) return new QueryExecutionException(message, null);
    return analysis(message);
  }

  static AnalysisException analysis(String message) {
    scala.collection.immutable.Map none = scala.collection.immutable.Map$.MODULE$.empty();
    return new AnalysisException(message, scala.Option.empty(), scala.Option.empty(), scala.Option.empty(),
        scala.Option.empty(), none, new QueryContext[0]);
  }
}
