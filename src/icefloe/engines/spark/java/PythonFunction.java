package icefloe.spark;

import java.util.ArrayDeque;
import java.util.function.BiFunction;
import py4j.ClientServerConnection;
import py4j.Gateway;
import py4j.Py4JPythonClientPerThread;

/** A Python function that borrows a connection for each call from a thread that has none; see python_calls.py. */
public class PythonFunction implements BiFunction {
  private static final ArrayDeque free = new ArrayDeque();  // connections that no thread uses
  private static Object owner;  // the client to which they belong

  private final BiFunction function;
  private final Gateway gateway;

  public PythonFunction(BiFunction function, Gateway gateway) {
    this.function = function;
    this.gateway = gateway;
  }

  public Object apply(Object first, Object second) {
    Object client = gateway.getCallbackClient();
    if (!(client instanceof Py4JPythonClientPerThread)) return function.apply(first, second);  // it has no such threads
    Py4JPythonClientPerThread connections = (Py4JPythonClientPerThread) client;
    if (connections.getPerThreadConnection() != null) return function.apply(first, second);
    connections.setPerThreadConnection(taken(client));  // if there is none, the call makes one
    boolean isDone = false;
    try {
      Object answer = function.apply(first, second);
      isDone = true;
      return answer;
    } finally {
      ClientServerConnection used = connections.getPerThreadConnection();
      connections.setPerThreadConnection(null);
      if (isDone) give(client, used);
      else if (used != null) used.shutdown();  // what comes next on it is not known
    }
  }

  private static synchronized ClientServerConnection taken(Object client) {
    if (client != owner) free.clear();
    owner = client;
    ClientServerConnection connection = (ClientServerConnection) free.poll();
    while (connection != null && connection.getSocket() == null) connection = (ClientServerConnection) free.poll();
    return connection;
  }

  private static synchronized void give(Object client, ClientServerConnection connection) {
    if (client == owner && connection != null) free.push(connection);
  }
}
