package icefloe.sql;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType$;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * Lets filters that Spark makes at run time, from the keys of the other side of a join, skip files by their bounds.
 *
 * Spark applies such filters to partition columns of files only. So the relation gets the bounds of the column as two
 * more partition columns, and the filter tests them. A filter that no relation can use is removed.
 */
public class RuntimeFilters extends scala.runtime.AbstractPartialFunction {
  public boolean isDefinedAt(Object node) { return node instanceof Filter && hasFilters(((Filter) node).condition()); }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    Filter filter = (Filter) node;
    if (filter.child().find(new IsOwn()).isEmpty()) return filter;  // of another table of the query
    boolean isOnFiles = isOwn(filter.child(), "true");
    Bounds bounds = new Bounds(isOnFiles ? (LogicalRelation) filter.child() : null);
    Expression condition = (Expression) filter.condition().transformUp(bounds);
    if (bounds.columns.isEmpty()) return new Filter(condition, filter.child());
    LogicalPlan filtered = new Filter(condition, bounds.relation());
    return new Project((Seq) filter.child().output(), filtered);
  }

  private static boolean hasFilters(Expression condition) { return condition.find(new IsFilter()).isDefined(); }

  /** Whether a plan is a relation of files that Python lists, which has bounds or not, or is either if that is null. */
  static boolean isOwn(LogicalPlan plan, String hasBounds) {
    if (!(plan instanceof LogicalRelation)) return false;
    Object relation = ((LogicalRelation) plan).relation();
    if (!(relation instanceof HadoopFsRelation)) return false;
    scala.Option option = ((HadoopFsRelation) relation).options().get("icefloe.has-bounds");
    return option.isDefined() && (hasBounds == null || hasBounds.equals(option.get()));
  }

  /** The relation whose PlannedFiles has another value of a field. */
  static LogicalRelation with(LogicalRelation relation, String field, Object value) {
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    return with(relation, field, value, files.partitionSchema(), relation.output());
  }

  /** The relation of files with their bucket, the value of a partition field, as the last constant. */
  static LogicalRelation withBucket(LogicalRelation relation, String field) {
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    AttributeReference bucket = new AttributeReference("_icefloe_bucket", IntegerType$.MODULE$, true, Metadata.empty(),
        NamedExpression$.MODULE$.newExprId(), Json.seq());
    ArrayList output = new ArrayList();
    for (int i = 0; i < relation.output().size(); i++) output.add(relation.output().apply(i));
    output.add(bucket);
    StructType constants =
        files.partitionSchema().add(new StructField(bucket.name(), bucket.dataType(), true, Metadata.empty()));
    return with(relation, "bucket", field, constants, Json.seq((List) output));
  }

  private static LogicalRelation with(
      LogicalRelation relation, String field, Object value, StructType constants, Seq output) {
    HadoopFsRelation files = (HadoopFsRelation) relation.relation();
    Object described = ((Function) files.location()).apply(Collections.singletonMap("constants", constants));
    FileIndex location = (FileIndex) ((Function) described).apply(Collections.singletonMap(field, value));
    HadoopFsRelation changed = new HadoopFsRelation(location, constants, files.dataSchema(), files.bucketSpec(),
        files.fileFormat(), files.options(), files.sparkSession());
    return relation.copy(changed, output, relation.catalogTable(), relation.isStreaming(), relation.stream());
  }

  private static class IsOwn extends scala.runtime.AbstractFunction1 {
    public Object apply(Object node) { return Boolean.valueOf(isOwn((LogicalPlan) node, null)); }
  }

  private static class IsFilter extends scala.runtime.AbstractFunction1 {
    public Object apply(Object node) { return Boolean.valueOf(node instanceof DynamicPruningSubquery); }
  }

  /** Replaces the filters of a condition, and collects the bounds that they need. */
  private static class Bounds extends scala.runtime.AbstractPartialFunction {
    private final LogicalRelation relation;
    final Map columns = new LinkedHashMap();  // name -> AttributeReference[]{lower, upper}

    Bounds(LogicalRelation relation) { this.relation = relation; }

    public boolean isDefinedAt(Object node) { return node instanceof DynamicPruningSubquery; }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      DynamicPruningSubquery filter = (DynamicPruningSubquery) node;
      if (relation == null) return Literal.TrueLiteral();
      Expression key = filter.pruningKey();
      StructType constants = ((HadoopFsRelation) relation.relation()).partitionSchema();
      scala.collection.Iterator used = key.references().iterator();
      boolean isConstant = true;
      while (used.hasNext()) isConstant &= constants.getFieldIndex(((Attribute) used.next()).name()).isDefined();
      if (isConstant) return filter;
      if (!(key instanceof AttributeReference) || !FileBounds.areKnown(key.dataType())) return Literal.TrueLiteral();
      AttributeReference column = (AttributeReference) key;
      AttributeReference[] bounds = (AttributeReference[]) columns.get(column.name());
      if (bounds == null) {
        bounds = new AttributeReference[] {bound("_lower_bound_", column), bound("_upper_bound_", column)};
        columns.put(column.name(), bounds);
      }
      Expression onLower = (Expression) filter.withNewChildren(Json.seq((Object) bounds[0]));
      return new FileBounds(bounds[0], bounds[1], onLower);
    }

    private static AttributeReference bound(String prefix, AttributeReference column) {
      return new AttributeReference(prefix + column.name(), column.dataType(), true, Metadata.empty(),
          NamedExpression$.MODULE$.newExprId(), Json.seq());
    }

    /** The relation with the bounds as partition columns. */
    LogicalRelation relation() {
      HadoopFsRelation files = (HadoopFsRelation) relation.relation();
      StructType constants = files.partitionSchema();
      ArrayList output = new ArrayList();
      for (int i = 0; i < relation.output().size(); i++) output.add(relation.output().apply(i));
      java.util.Iterator all = columns.values().iterator();
      while (all.hasNext()) {
        AttributeReference[] bounds = (AttributeReference[]) all.next();
        for (int i = 0; i < 2; i++) {
          constants = constants.add(new StructField(bounds[i].name(), bounds[i].dataType(), true, Metadata.empty()));
          output.add(bounds[i]);
        }
      }
      String[] names = (String[]) columns.keySet().toArray(new String[0]);
      return with(relation, "bounded", names, constants, Json.seq((List) output));
    }
  }
}
