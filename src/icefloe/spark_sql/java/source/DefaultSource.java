package icefloe;

import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** format("icefloe"): Spark finds it by this name, so it cannot have a hash in it, and only passes calls on. */
public class DefaultSource implements SupportsCatalogOptions {
  public static volatile SupportsCatalogOptions source;

  public Identifier extractIdentifier(CaseInsensitiveStringMap options) { return source.extractIdentifier(options); }
  public String extractCatalog(CaseInsensitiveStringMap options) { return source.extractCatalog(options); }

  public Optional extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return source.extractTimeTravelTimestamp(options);
  }

  public Optional extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return source.extractTimeTravelVersion(options);
  }

  public StructType inferSchema(CaseInsensitiveStringMap options) { return source.inferSchema(options); }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return source.getTable(schema, partitioning, properties);
  }
}
