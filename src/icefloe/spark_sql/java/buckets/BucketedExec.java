package icefloe.sql;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * The rows of a scan, with one partition for each bucket, from 0 on. The last constant of each file of the scan is its
 * bucket. The scan is given other groups of files before it runs, so that executors run classes of Spark alone.
 */
public class BucketedExec extends SparkPlan {
  static final Field FILES = files();
  private final SparkPlan child;
  private final Seq keys;
  private final int count;

  public BucketedExec(SparkPlan child, Seq keys, int count) {
    this.child = child;
    this.keys = keys;
    this.count = count;
  }

  public Seq output() { return child.output(); }
  public Seq children() { return Json.seq((Object) child); }

  /** The partitioning in which Spark joins two sides as they are; only the join of two such sides gets to know it. */
  public Partitioning outputPartitioning() { return new HashPartitioning(keys, count); }

  public RDD doExecute() {
    RDD rows = child.execute();
    FileScanRDD files = (FileScanRDD) ((FileSourceScanExec) child.collectLeaves().head()).inputRDD();
    try {
      FILES.set(files, grouped(files.filePartitions()));
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
    if (rows.getNumPartitions() == count) return rows;
    throw new IllegalStateException("the files of a table could not be read by bucket");
  }

  /** One partition for each bucket, with all its files. */
  private Seq grouped(Seq partitions) {
    ArrayList members = new ArrayList();
    for (int i = 0; i < count; i++) members.add(new ArrayList());
    for (int i = 0; i < partitions.size(); i++) {
      PartitionedFile[] files = ((FilePartition) partitions.apply(i)).files();
      for (int j = 0; j < files.length; j++) {
        InternalRow constants = files[j].partitionValues();
        ((List) members.get(constants.getInt(constants.numFields() - 1))).add(files[j]);
      }
    }
    ArrayList buckets = new ArrayList();
    for (int i = 0; i < count; i++) {
      PartitionedFile[] files = (PartitionedFile[]) ((List) members.get(i)).toArray(new PartitionedFile[0]);
      buckets.add(new FilePartition(i, files));
    }
    return Json.seq((List) buckets);
  }

  /** The field that says which files each task of a scan reads; null if this Spark has no such field. */
  private static Field files() {
    try {
      Field field = FileScanRDD.class.getDeclaredField("filePartitions");
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException error) {
      return null;
    }
  }

  /** What executors get, which have no class of this package: they get plans as parts of others, and run none. */
  public Object writeReplace() { return child; }

  public TreeNode withNewChildrenInternal(IndexedSeq children) {
    return new BucketedExec((SparkPlan) children.apply(0), keys, count);
  }

  public String nodeName() { return "Buckets"; }
  public int productArity() { return 3; }
  public Object productElement(int n) { return n == 0 ? child : n == 1 ? (Object) keys : (Object) Integer.valueOf(count); }
  public boolean canEqual(Object other) { return other instanceof BucketedExec; }
}
