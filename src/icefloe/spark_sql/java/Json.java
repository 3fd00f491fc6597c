package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import scala.collection.immutable.Seq;

/** Builds and reads messages, with the casts that the compiler of Spark needs for generic classes. */
public class Json {
  public static final ObjectMapper mapper = new ObjectMapper();

  static ObjectNode call(String name) { return mapper.createObjectNode().put("call", name); }

  static ObjectNode call(String name, String[] namespace) {
    ObjectNode node = call(name);
    node.set("namespace", array(namespace));
    return node;
  }

  static ObjectNode call(String name, Identifier ident) {
    return call(name, ident.namespace()).put("name", ident.name());
  }

  static ObjectNode object() { return mapper.createObjectNode(); }
  static ArrayNode array() { return mapper.createArrayNode(); }

  static ArrayNode array(String[] items) {
    ArrayNode node = array();
    for (int i = 0; i < items.length; i++) node.add(items[i]);
    return node;
  }

  static ObjectNode object(Map map) {
    ObjectNode node = object();
    Iterator names = map.keySet().iterator();
    while (names.hasNext()) {
      String name = (String) names.next();
      node.put(name, (String) map.get(name));
    }
    return node;
  }

  static JsonNode parsed(String text) {
    try {
      return mapper.readTree(text);
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  static boolean has(JsonNode node, String name) { return at(node, name) != null && !at(node, name).isNull(); }
  static JsonNode at(JsonNode node, String name) { return (JsonNode) node.get(name); }
  static JsonNode at(JsonNode node, int i) { return (JsonNode) node.get(i); }
  static String text(JsonNode node, String name) { return has(node, name) ? at(node, name).asText() : null; }

  static String[] texts(JsonNode node) {
    String[] texts = new String[node.size()];
    for (int i = 0; i < texts.length; i++) texts[i] = at(node, i).asText();
    return texts;
  }

  static Map map(JsonNode node) {
    HashMap map = new HashMap();
    Iterator names = node.fieldNames();
    while (names.hasNext()) {
      String name = (String) names.next();
      map.put(name, at(node, name).asText());
    }
    return map;
  }

  static Seq seq(List items) { return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq(); }

  static Seq seq(Object item) {
    ArrayList items = new ArrayList(1);
    items.add(item);
    return seq((List) items);
  }

  static Seq seq() { return seq((List) new ArrayList()); }
}
