import Foundation
import Glibc
import Testing

/// What programs write by descriptors that are to be in step with the disk (O_DSYNC, O_SYNC) is durable when the call returns.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
final class SyncedDescriptorTests: MountDesk {
  /// The agent is killed behind it.
  private func survives(_ python: String) throws {
    try desk.done("put", "-", "/source", input: noise(300_000))
    try desk.done("mount", "mnt")
    let outcome = try desk.run("/usr/bin/python3", ["-c", "import os\n" + python])
    kill(try desk.agentProcess(), SIGKILL)
    #expect(outcome.code == 0, "\(outcome.errors)")
    try desk.unlock()
  }

  @Test(arguments: ["O_DSYNC", "O_SYNC"]) func `a copy is durable`(flag: String) throws {
    try survives(
      """
      target = os.open("mnt/target", os.O_WRONLY | os.O_CREAT | os.\(flag))
      assert os.copy_file_range(os.open("mnt/source", os.O_RDONLY), target, 300_000) == 300_000
      """)
    #expect(try desk.served("cat", "/target").bytes == noise(300_000))
  }

  @Test func `a size that fallocate(2) sets is durable`() throws {
    try survives("os.posix_fallocate(os.open('mnt/source', os.O_RDWR | os.O_DSYNC), 0, 400_000)")
    #expect(try desk.served("cat", "/source").bytes == noise(300_000) + [UInt8](repeating: 0, count: 100_000))
  }

  /// The kernel says by itself when such a write is done, and would ask for no sync.
  @Test(.enabled(if: Program.areHere("fio"), "fio is not here")) func `a write that is not waited for is durable`()
    throws
  {
    try desk.done("put", "-", "/file", input: [UInt8](repeating: 0, count: 256 << 10))
    try desk.done("mount", "mnt")
    try shell(
      """
      fio --name=job --filename=mnt/file --size=256k --rw=write --bs=4k --ioengine=libaio --iodepth=8 --direct=1 --sync=dsync \
        --buffer_pattern=0x5a5a5a5a --invalidate=0 --minimal > said
      """)
    kill(try desk.agentProcess(), SIGKILL)
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes.count { $0 == 0x5a } == 256 << 10)
  }
}
