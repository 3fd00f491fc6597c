package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table, or one of its metadata tables, in the state in which it was loaded. */
public class IcefloeTable implements Table, SupportsRead, SupportsWrite, SupportsMetadataColumns,
    SupportsRowLevelOperations, SupportsDeleteV2 {
  final Peer peer;
  final JsonNode description;
  private final StructType schema;

  IcefloeTable(Peer peer, JsonNode description) {
    this.peer = peer;
    this.description = description;
    this.schema = (StructType) DataType.fromJson(Json.text(description, "schema"));
  }

  /** Text by which Python finds the table again, in the same state. */
  String handle() { return Json.text(description, "handle"); }

  /** The same for all states of a table: Spark takes a cached table of its name only if it is the same one. */
  public String id() { return Json.text(description, "id"); }

  public String name() { return Json.text(description, "name"); }
  public StructType schema() { return schema; }
  public Map properties() { return Json.map(Json.at(description, "properties")); }
  public Transform[] partitioning() { return Partitioning.transforms(Json.at(description, "partitioning")); }
  public String toString() { return name(); }

  public boolean equals(Object other) {
    return other instanceof IcefloeTable && ((IcefloeTable) other).peer.equals(peer)
        && ((IcefloeTable) other).handle().equals(handle());
  }

  public int hashCode() { return handle().hashCode(); }

  public Set capabilities() {
    String[] names = Json.texts(Json.at(description, "capabilities"));
    HashSet capabilities = new HashSet();
    for (int i = 0; i < names.length; i++) capabilities.add(TableCapability.valueOf(names[i]));
    return capabilities;
  }

  StructType metadataSchema() { return (StructType) DataType.fromJson(Json.text(description, "metadata_columns")); }

  public MetadataColumn[] metadataColumns() {
    StructType columns = metadataSchema();
    MetadataColumn[] metadataColumns = new MetadataColumn[columns.length()];
    for (int i = 0; i < metadataColumns.length; i++) metadataColumns[i] = new IcefloeMetadataColumn(columns.apply(i));
    return metadataColumns;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new IcefloeScanBuilder(this, options, null);
  }

  public boolean truncateTable() {
    peer.ask(Json.call("truncate table").put("handle", handle()));
    return true;
  }

  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return new RowChange(this, info);
  }

  public boolean canDeleteWhere(Predicate[] predicates) {
    return peer.ask(deletion("can delete", predicates)).asBoolean();
  }

  public void deleteWhere(Predicate[] predicates) { peer.ask(deletion("delete rows", predicates)); }

  private ObjectNode deletion(String name, Predicate[] predicates) {
    ObjectNode call = Json.call(name).put("handle", handle());
    call.set("where", Predicates.messages(predicates));
    return call;
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return StreamSupport.current.write(this, info); }
}
