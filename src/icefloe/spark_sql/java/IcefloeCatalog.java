package icefloe.sql;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog of Spark whose work is done in Python. */
public class IcefloeCatalog implements StagingTableCatalog, SupportsNamespaces, ProcedureCatalog {
  private static final String WAP_BRANCH = "spark.wap.branch";  // the setting of Apache Iceberg

  private Peer peer;

  public void initialize(String name, CaseInsensitiveStringMap options) { peer = new Peer(options.get("peer"), name); }
  public String name() { return peer.catalog; }

  public Set capabilities() {
    HashSet capabilities = new HashSet();
    capabilities.add(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
    return capabilities;
  }

  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    String[] names = Json.texts(peer.ask(Json.call("list tables", namespace)));
    Identifier[] tables = new Identifier[names.length];
    for (int i = 0; i < tables.length; i++) tables[i] = Identifier.of(namespace, names[i]);
    return tables;
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    String branch = SQLConf$.MODULE$.get().getConfString(WAP_BRANCH, null);
    return table(Json.call("load table", ident).put("wap_branch", branch));
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return table(Json.call("load table", ident).put("version", version));
  }

  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return table(Json.call("load table", ident).put("timestamp_us", timestamp));
  }

  public Table createTable(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return table(definition("create table", ident, schema, partitions, properties));
  }

  public StagedTable stageCreate(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return staged("create", ident, schema, partitions, properties);
  }

  public StagedTable stageReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    return staged("replace", ident, schema, partitions, properties);
  }

  public StagedTable stageCreateOrReplace(Identifier ident, StructType schema, Transform[] partitions, Map properties)
      throws NoSuchNamespaceException {
    return staged("create or replace", ident, schema, partitions, properties);
  }

  private StagedTable staged(
      String mode, Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    ObjectNode call = definition("stage table", ident, schema, partitions, properties).put("mode", mode);
    return new IcefloeStagedTable(peer, peer.ask(call));
  }

  private static ObjectNode definition(
      String name, Identifier ident, StructType schema, Transform[] partitions, Map properties) {
    ObjectNode call = Json.call(name, ident).put("schema", schema.json());
    call.set("partitioning", Partitioning.messages(partitions));
    call.set("properties", Json.object(properties));
    return call;
  }

  public Table alterTable(Identifier ident, TableChange[] changes) throws NoSuchTableException {
    ArrayNode messages = Json.array();
    for (int i = 0; i < changes.length; i++) messages.add(TableChanges.message(changes[i]));
    ObjectNode call = Json.call("alter table", ident);
    call.set("changes", messages);
    return table(call);
  }

  private Table table(ObjectNode call) { return new IcefloeTable(peer, peer.ask(call)); }

  public boolean dropTable(Identifier ident) { return drop(ident, false); }
  public boolean purgeTable(Identifier ident) { return drop(ident, true); }

  private boolean drop(Identifier ident, boolean purge) {
    return peer.ask(Json.call("drop table", ident).put("purge", purge)).asBoolean();
  }

  public void renameTable(Identifier from, Identifier to) throws NoSuchTableException, TableAlreadyExistsException {
    ObjectNode call = Json.call("rename table", from).put("new_name", to.name());
    call.set("new_namespace", Json.array(to.namespace()));
    peer.ask(call);
  }

  public String[][] listNamespaces() throws NoSuchNamespaceException { return listNamespaces(new String[0]); }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    JsonNode reply = peer.ask(Json.call("list namespaces", namespace));
    String[][] namespaces = new String[reply.size()][];
    for (int i = 0; i < namespaces.length; i++) namespaces[i] = Json.texts(Json.at(reply, i));
    return namespaces;
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    return Json.map(peer.ask(Json.call("load namespace", namespace)));
  }

  public void createNamespace(String[] namespace, Map properties) throws NamespaceAlreadyExistsException {
    ObjectNode call = Json.call("create namespace", namespace);
    call.set("properties", Json.object(properties));
    peer.ask(call);
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) throws NoSuchNamespaceException {
    ObjectNode updates = Json.object();
    ArrayNode removals = Json.array();
    for (int i = 0; i < changes.length; i++) {
      if (changes[i] instanceof NamespaceChange.SetProperty) {
        NamespaceChange.SetProperty change = (NamespaceChange.SetProperty) changes[i];
        updates.put(change.property(), change.value());
      } else {
        removals.add(((NamespaceChange.RemoveProperty) changes[i]).property());
      }
    }
    ObjectNode call = Json.call("alter namespace", namespace);
    call.set("updates", updates);
    call.set("removals", removals);
    peer.ask(call);
  }

  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    return peer.ask(Json.call("drop namespace", namespace).put("cascade", cascade)).asBoolean();
  }

  public UnboundProcedure loadProcedure(Identifier ident) {
    return new ProcedureCall(peer, peer.ask(Json.call("load procedure", ident)));
  }

  public Identifier[] listProcedures(String[] namespace) {
    JsonNode reply = peer.ask(Json.call("list procedures", namespace));
    Identifier[] procedures = new Identifier[reply.size()];
    for (int i = 0; i < procedures.length; i++) {
      procedures[i] = Identifier.of(new String[] {"system"}, Json.at(reply, i).asText());
    }
    return procedures;
  }
}
