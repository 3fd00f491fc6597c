package icefloe.sql;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Conditions as messages: trees of operators, columns and typed literals. */
public class Predicates {
  static ArrayNode messages(Expression[] expressions) {
    ArrayNode messages = Json.array();
    for (int i = 0; i < expressions.length; i++) messages.add(message(expressions[i]));
    return messages;
  }

  private static ObjectNode message(Expression expression) {
    ObjectNode message = Json.object();
    if (expression instanceof NamedReference) {
      message.put("node", "column").set("path", Json.array(((NamedReference) expression).fieldNames()));
      return message;
    }
    if (expression instanceof Predicate) {  // also true and false, which are literals too
      message.put("node", "predicate").put("name", ((Predicate) expression).name());
      message.set("arguments", messages(expression.children()));
      return message;
    }
    if (expression instanceof Literal) {
      Object value = ((Literal) expression).value();
      message.put("node", "literal").put("type", ((Literal) expression).dataType().catalogString());
      if (value instanceof byte[]) return message.put("value", (byte[]) value);
      return message.put("value", value == null ? null : value.toString());
    }
    return message.put("node", "other").put("text", expression.toString());
  }
}
