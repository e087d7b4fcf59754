import CofferTestSupport
import Foundation
import Glibc
import Testing

/// A log in a mounted vault, on a disk that others fill in the midst of what is written. (One that is short of room all the time
/// refuses a write as a whole.)
@Suite(
  .enabled(if: Ground.mountIsThere, Ground.missing),
  .enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for these tests, which needs root"))
final class FullDiskAppendTests {
  let desk: Desk
  let disk: MountedDisk

  init() throws {
    desk = try Desk()
    disk = try desk.makeVault(onDiskOf: 64)
    try FileManager.default.createDirectory(atPath: desk.path("mnt"), withIntermediateDirectories: false)
    try desk.done("mount", "mnt")
  }

  deinit {
    _ = try? desk.run("coffer", ["unmount", "--force", desk.path("mnt")])
    _ = try? desk.run("coffer", ["agent", "stop"])
  }

  /// Whoever goes on behind what they were told has everything once, also where they ask for the size in between.
  @Test(arguments: [O_WRONLY, O_RDWR]) func `each byte that is appended while the disk is full is there once`(
    access: CInt
  ) throws {
    let count = 3 << 20
    var failureCount = 0
    for round in 1...8 {
      let file = try Handle(desk.path("mnt/log"), access | O_APPEND | O_CREAT | O_TRUNC)
      let bytes = noise(count, seed: UInt64(round))
      var done = 0
      while done < 2 << 20 { done += try file.write(Array(bytes[done..<(2 << 20)])) }
      try file.sync()
      let space = try Kernel.fileSystem(desk.path("disk"))
      let other = try Handle(desk.path("disk/other"), O_WRONLY | O_CREAT)
      try CallError.check(posix_fallocate(other.number, 0, Int(space.f_bavail * space.f_frsize) - round * 100 << 10))
      var left = 2
      while done < count, left > 0 {
        do {
          done += try file.write(Array(bytes[done...]))
        } catch let error as CallError where error.number == ENOSPC {
          #expect(try file.stat().size == done)
          failureCount += 1
          left -= 1
          // Room.
          if left == 1 { try other.truncate(to: 0) }
        }
      }
      try other.truncate(to: 0)
      #expect(done == count)
      let read = try Handle(desk.path("mnt/log"), O_RDONLY).readAll()
      // Of a comparison that fails, all differences would be looked for.
      let isSame = read == bytes
      #expect(isSame, "\(read.count)")
    }
    #expect(failureCount > 0)
  }
}
