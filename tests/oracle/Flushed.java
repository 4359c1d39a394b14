import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;

/**
 * The local file system without checksum files: a flush hands the bytes to the operating system, so that they outlive the
 * process. Hadoop's checksummed one keeps up to a chunk in the process until the file is closed.
 */
public class Flushed extends LocalFileSystem {
  @Override
  public void initialize(java.net.URI name, Configuration conf) throws java.io.IOException {
    super.initialize(name, conf);
    setWriteChecksum(false);
    setVerifyChecksum(false);
  }
}
