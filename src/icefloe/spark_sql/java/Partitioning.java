package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.Transform;

/** Partition transforms as messages: the name of the transform, its number if it has one, the path of its column. */
public class Partitioning {
  static ArrayNode messages(Transform[] transforms) {
    ArrayNode messages = Json.array();
    for (int i = 0; i < transforms.length; i++) messages.add(message(transforms[i]));
    return messages;
  }

  private static ObjectNode message(Transform transform) {
    ObjectNode message = Json.object().put("transform", transform.name()).put("text", transform.describe());
    ArrayNode columns = Json.array();
    ArrayNode numbers = Json.array();
    Expression[] arguments = transform.arguments();
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i] instanceof NamedReference) columns.add(Json.array(((NamedReference) arguments[i]).fieldNames()));
      else if (arguments[i] instanceof Literal) numbers.add(String.valueOf(((Literal) arguments[i]).value()));
    }
    message.set("columns", columns);
    message.set("numbers", numbers);
    return message;
  }

  static Transform[] transforms(JsonNode messages) {
    Transform[] transforms = new Transform[messages.size()];
    for (int i = 0; i < transforms.length; i++) transforms[i] = transform(Json.at(messages, i));
    return transforms;
  }

  private static Transform transform(JsonNode message) {
    String name = Json.text(message, "transform");
    String column = quoted(Json.texts(Json.at(Json.at(message, "columns"), 0)));
    if (name.equals("identity")) return Expressions.identity(column);
    String[] numbers = Json.texts(Json.at(message, "numbers"));
    if (name.equals("bucket")) return Expressions.bucket(Integer.parseInt(numbers[0]), new String[] { column });
    Expression[] arguments = new Expression[numbers.length + 1];
    for (int i = 0; i < numbers.length; i++) arguments[i] = Expressions.literal(Integer.valueOf(numbers[i]));
    arguments[numbers.length] = Expressions.column(column);
    return Expressions.apply(name, arguments);
  }

  private static String quoted(String[] path) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < path.length; i++) {
      text.append(i == 0 ? "`" : ".`").append(path[i].replace("`", "``")).append('`');
    }
    return text.toString();
  }
}
