import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.hbase.util.VersionInfo;

/**
 * A real HBase in this very process: `cargo xtask truth` asks it what the rules of a store are, by HBase's own RPC, and by
 * a pipe what no client can ask for. Its greeting is HBase's version and the master's port.
 *
 * A frame is a 4-byte length and so many bytes, all numbers big-endian. A request holds an 8-byte number, one byte that
 * names the call, and the call's arguments; its answer holds the number again, one byte that is 0, or 1 where it failed,
 * and the answer or the failure's words. Answers come as they are ready, in any order. Byte strings have a 4-byte length
 * before them, lists a 4-byte count. xtask/src/truth/wire.rs is the other side.
 */
public class Truth {
  static final int THREADS = 32;
  static final byte OK = 0, FAILED = 1;
  final Cluster cluster;
  final Tables tables;
  final DataOutputStream out;

  Truth(File folder, OutputStream out) throws Exception {
    cluster = new Cluster(folder);
    tables = new Tables(cluster);
    this.out = new DataOutputStream(new BufferedOutputStream(out, 1 << 16));
  }

  public static void main(String[] args) throws Exception {
    PrintStream pipe = System.out;
    System.setOut(System.err);
    Truth truth = new Truth(new File(args[0]), pipe);
    String greeting = VersionInfo.getVersion() + " " + truth.cluster.masterPort();
    truth.answer(0, OK, greeting.getBytes(StandardCharsets.UTF_8));
    ExecutorService workers = Executors.newFixedThreadPool(THREADS);
    DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
    for (;;) {
      byte[] frame;
      try {
        frame = new byte[in.readInt()];
      } catch (EOFException closed) {
        break;
      }
      in.readFully(frame);
      workers.execute(() -> truth.serve(frame));
    }
    truth.cluster.stop();
    Runtime.getRuntime().halt(0);
  }

  void serve(byte[] frame) {
    Wire ask = new Wire(frame);
    long id = ask.u64();
    int call = ask.u8();
    byte fault = OK;
    byte[] told;
    try {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      call(call, ask, new Wire.Out(bytes));
      told = bytes.toByteArray();
    } catch (Throwable error) {
      fault = FAILED;
      told = String.valueOf(error).getBytes(StandardCharsets.UTF_8);
    }
    try {
      answer(id, fault, told);
    } catch (IOException gone) {
      Runtime.getRuntime().halt(1);
    }
  }

  synchronized void answer(long id, byte fault, byte[] told) throws IOException {
    out.writeInt(9 + told.length);
    out.writeLong(id);
    out.writeByte(fault);
    out.write(told);
    out.flush();
  }

  void call(int call, Wire ask, Wire.Out tell) throws Exception {
    if (call < 10) cluster.call(call, ask, tell);
    else tables.call(call, ask, tell);
  }
}
