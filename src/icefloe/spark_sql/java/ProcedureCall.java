package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** A procedure of a catalog, which Python runs. */
public class ProcedureCall implements UnboundProcedure, BoundProcedure {
  private final Peer peer;
  private final JsonNode description;

  ProcedureCall(Peer peer, JsonNode description) {
    this.peer = peer;
    this.description = description;
  }

  public String name() { return Json.text(description, "name"); }
  public String description() { return Json.text(description, "description"); }
  public BoundProcedure bind(StructType arguments) { return this; }
  public boolean isDeterministic() { return false; }

  private JsonNode parameter(int i) { return Json.at(Json.at(description, "parameters"), i); }
  private int count() { return Json.at(description, "parameters").size(); }
  private DataType type(int i) { return DataType.fromDDL(Json.text(parameter(i), "type")); }

  public ProcedureParameter[] parameters() {
    ProcedureParameter[] parameters = new ProcedureParameter[count()];
    for (int i = 0; i < parameters.length; i++) {
      ProcedureParameter.Builder builder = ProcedureParameter.in(Json.text(parameter(i), "name"), type(i));
      String value = Json.text(parameter(i), "default");
      parameters[i] = (value == null ? builder : builder.defaultValue(value)).build();
    }
    return parameters;
  }

  public Iterator call(InternalRow input) {
    ObjectNode arguments = Json.object();
    for (int i = 0; i < count(); i++) {
      if (input.isNullAt(i)) continue;
      Object value = input.get(i, type(i));
      String name = Json.text(parameter(i), "name");
      if (value instanceof ArrayData) arguments.set(name, texts((ArrayData) value, ((ArrayType) type(i)).elementType()));
      else if (value instanceof MapData) arguments.set(name, pairs((MapData) value));
      else arguments.put(name, value.toString());
    }
    ObjectNode call = Json.call("call procedure").put("procedure", name());
    call.set("arguments", arguments);
    InternalRow[] rows = (InternalRow[]) peer.ask(call, null);
    ArrayList scans = new ArrayList();
    scans.add(new ProcedureRows((StructType) DataType.fromDDL(Json.text(description, "result")), rows));
    return scans.iterator();
  }

  private static ObjectNode pairs(MapData values) {
    ObjectNode pairs = Json.object();
    ArrayData keys = values.keyArray();
    ArrayData texts = values.valueArray();
    for (int i = 0; i < values.numElements(); i++) {
      pairs.put(keys.getUTF8String(i).toString(), texts.getUTF8String(i).toString());
    }
    return pairs;
  }

  private static ArrayNode texts(ArrayData values, DataType type) {
    ArrayNode texts = Json.array();
    for (int i = 0; i < values.numElements(); i++) texts.add(values.get(i, type).toString());
    return texts;
  }
}
