package icefloe.sql;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** An offset of a stream: JSON that Python writes. Spark compares offsets by their text. */
public class IcefloeOffset extends Offset {
  static final IcefloeOffset NOT_STARTED = new IcefloeOffset("{}");

  private final String text;

  IcefloeOffset(String text) { this.text = text; }

  public String json() { return text; }
}
