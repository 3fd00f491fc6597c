package icefloe.sql;

import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** Finds the table of format("icefloe").load(name): by its name, or by the location of its folder or metadata file. */
public class NamedSource implements SupportsCatalogOptions {
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    String name = name(options);
    if (isLocation(name)) return Identifier.of(new String[0], name);
    String[] parts = parts(name);
    if (parts.length == 1 && isAttached(current())) return Identifier.of(manager().currentNamespace(), parts[0]);
    int first = hasCatalog(parts) ? 1 : 0;
    String[] namespace = new String[parts.length - first - 1];
    System.arraycopy(parts, first, namespace, 0, namespace.length);
    return Identifier.of(namespace, parts[parts.length - 1]);
  }

  public String extractCatalog(CaseInsensitiveStringMap options) {
    String name = name(options);
    if (!isLocation(name) && hasCatalog(parts(name))) return parts(name)[0];
    return isAttached(current()) ? current() : attached();
  }

  public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  /** Streams do not ask for the catalog and the name, but for the table. */
  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return table(new CaseInsensitiveStringMap(properties));
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) { return ((IcefloeTable) table(options)).schema(); }

  private Table table(CaseInsensitiveStringMap options) {
    CatalogPlugin catalog = manager().catalog(extractCatalog(options));
    try {
      return ((TableCatalog) catalog).loadTable(extractIdentifier(options));
    } catch (NoSuchTableException error) {
      Platform.throwException(error);
      return null;
    }
  }

  private static String name(CaseInsensitiveStringMap options) {
    String name = options.containsKey("path") ? options.get("path") : options.get("table");
    if (name == null) throw unnamed();
    return name;
  }

  private static RuntimeException unnamed() {
    Platform.throwException(Failures.analysis("format(\"icefloe\") needs the name of a table or its location"));
    return null;
  }

  private static boolean isLocation(String name) { return name.indexOf('/') >= 0; }

  private static String[] parts(String name) {
    try {
      Seq parsed = session().sessionState().sqlParser().parseMultipartIdentifier(name);
      String[] parts = new String[parsed.size()];
      for (int i = 0; i < parts.length; i++) parts[i] = (String) parsed.apply(i);
      return parts;
    } catch (ParseException error) {
      Platform.throwException(error);
      return null;
    }
  }

  private static SparkSession session() { return (SparkSession) SparkSession.active(); }
  private static CatalogManager manager() { return session().sessionState().catalogManager(); }
  private static String current() { return manager().currentCatalog().name(); }

  private static boolean hasCatalog(String[] parts) { return parts.length > 1 && isAttached(parts[0]); }

  private static boolean isAttached(String catalog) {
    String prefix = "spark.sql.catalog." + catalog + ".peer";
    return SQLConf$.MODULE$.get().getAllConfs().contains(prefix);
  }

  /** The first catalog that is attached to the session, in the order of their names. */
  private static String attached() {
    String first = null;
    Iterator settings = SQLConf$.MODULE$.get().getAllConfs().keysIterator();
    while (settings.hasNext()) {
      String setting = (String) settings.next();
      if (!setting.startsWith("spark.sql.catalog.") || !setting.endsWith(".peer")) continue;
      String name = setting.substring("spark.sql.catalog.".length(), setting.length() - ".peer".length());
      if (first == null || name.compareTo(first) < 0) first = name;
    }
    if (first == null) {
      Platform.throwException(Failures.analysis("no catalog is attached: call icefloe.attach(spark, \"demo\")"));
    }
    return first;
  }
}
