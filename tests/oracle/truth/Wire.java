import java.io.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** A frame's bytes, read from the front. */
class Wire {
  final ByteBuffer in;

  Wire(byte[] frame) { in = ByteBuffer.wrap(frame); }

  int u8() { return in.get() & 0xff; }
  boolean flag() { return in.get() != 0; }
  int u32() { return in.getInt(); }
  long u64() { return in.getLong(); }

  byte[] bytes() {
    byte[] b = new byte[in.getInt()];
    in.get(b);
    return b;
  }

  String text() { return new String(bytes(), StandardCharsets.UTF_8); }

  byte[][] list() {
    byte[][] all = new byte[u32()][];
    for (int i = 0; i < all.length; i++) all[i] = bytes();
    return all;
  }

  static class Out extends DataOutputStream {
    Out(OutputStream out) { super(out); }

    void bytes(byte[] b) throws IOException { bytes(b, 0, b.length); }

    void bytes(byte[] b, int from, int length) throws IOException {
      writeInt(length);
      write(b, from, length);
    }

    void text(String s) throws IOException { bytes(s.getBytes(StandardCharsets.UTF_8)); }
  }
}
