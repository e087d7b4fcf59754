import Glibc
import Testing

/// What fio(1) writes in many ways and from many jobs, it finds again.
@Suite(.enabled(if: Program.areHere("fio"), "fio is not here")) struct FioTests {
  @Test(
    arguments: Ground.Kind.here,
    [
      "--rw=randwrite --bs=4k --ioengine=psync", "--rw=randrw --bsrange=512-64k --ioengine=psync --fsync=32",
      "--rw=write --bs=128k --ioengine=psync", "--rw=randwrite --bs=4k --ioengine=mmap",
      "--rw=randwrite --bs=16k --ioengine=psync --direct=1",
      "--rw=randwrite --bs=8k --ioengine=libaio --iodepth=8 --direct=1",
      "--rw=randwrite --bs=4k --ioengine=psync --fallocate=keep --fdatasync=8",
    ])
  func `every block is what was written`(kind: Ground.Kind, way: String) throws {
    let program = try Program(in: Plot.on(kind))
    let engines = try program.run("fio --enghelp")
    for engine in ["libaio", "mmap"] where way.contains("=\(engine)") && !engines.contains(engine) { return }
    let common =
      "--group_reporting --minimal --verify=crc32c --verify_fatal=1 --verify_async=0 --randrepeat=1 --end_fsync=1"
    // Four jobs with a file each, then two in halves of one file.
    try program.run("fio \(common) \(way) --size=2m --numjobs=4 --name=own > \"$PLAIN/log\"")
    // Its engine for memory passes over where a job's half begins.
    if way.contains("=mmap") { return }
    try program.run(
      """
      truncate -s 4m shared
      fio \(common) \(way) --filename=shared --size=2m --name=one --offset=0 --name=two --offset=2m > "$PLAIN/log"
      """)
  }
}
