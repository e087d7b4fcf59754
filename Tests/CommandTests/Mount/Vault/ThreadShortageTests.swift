import Foundation
import Glibc
import Testing

/// A group of processes that may have no more threads than it has.
private final class ThreadLimit {
  private let folder: String

  /// Where root may make such a group: of the first version's controller for numbers of processes, or of the second's.
  private static let places = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]

  /// Nil where none can be made.
  init?() {
    for place in Self.places {
      let folder = "\(place)/coffer-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
      guard mkdir(folder, 0o755) == 0 else { continue }
      if access(folder + "/pids.max", W_OK) == 0 {
        self.folder = folder
        return
      }
      rmdir(folder)
    }
    return nil
  }

  deinit { rmdir(folder) }

  static let isPossible = ThreadLimit() != nil

  private func set(_ file: String, _ text: String) throws { try Handle(folder + "/" + file, O_WRONLY).write(text) }

  func take(_ process: Int32) throws { try set("cgroup.procs", "\(process)") }

  /// - Parameter further: how many it may have more.
  func close(but further: Int = 0) throws {
    let present = try Kernel.text(folder + "/pids.current").trimmingCharacters(in: .whitespacesAndNewlines)
    try set("pids.max", "\(try #require(Int(present)) + further)")
  }

  func open() throws { try set("pids.max", "max") }
}

/// Programs of the user's may use up all threads that the system gives.
@Suite(
  .enabled(if: Ground.mountIsThere, Ground.missing),
  .enabled(if: ThreadLimit.isPossible, "no group of processes with a limit of its own can be made here"))
struct ThreadShortageTests {
  @Test(.timeLimit(.minutes(10))) func `what was mounted goes on without a further thread, and is locked all the same`()
    throws
  {
    let ground = try Ground(.mount)
    let desk = ground.desk
    let limit = try #require(ThreadLimit())
    try limit.take(desk.agentProcess())
    try limit.close()
    defer { try? limit.open() }
    // Enough for commits beside, for pieces that several threads take, and to wait to be closed.
    for number in 0..<1500 { try Kernel.makeFile(ground.path + "/\(number)", noise(3000, seed: UInt64(number))) }
    let large = ground.path + "/large"
    try Kernel.makeFile(large, noise(8 << 20))
    let file = try Handle(large, O_RDWR)
    try file.sync()
    #expect(try firstDifference(file.readAll(), noise(8 << 20)) == nil)
    // A mapping would have to be written back first, by a thread that answers nothing else.
    #expect(throws: CallError(EAGAIN)) { try file.seek(0, GNU.seekHole) }
    try desk.served("lock", "--now")
    #expect(throws: CallError(EACCES)) { try file.read(1, at: 0) }
    try desk.unserved(75, "no more threads", "put", "-", "/new")
    try limit.open()
    try ground.unlock()
    for number in [0, 777, 1499] {
      #expect(try Kernel.content(ground.path + "/\(number)") == noise(3000, seed: UInt64(number)))
    }
    #expect(try firstDifference(file.readAll(), noise(8 << 20)) == nil)
    try end(desk)
  }

  /// Nobody is left in the group then, so that it can be removed.
  private func end(_ desk: Desk) throws {
    let process = try desk.agentProcess()
    try desk.served("agent", "stop")
    while FileManager.default.fileExists(atPath: "/proc/\(process)/exe") { sched_yield() }
  }

  @Test(.timeLimit(.minutes(10))) func `a mount that lacks a thread is refused, and leaves nothing mounted`() throws {
    let ground = try Ground(.mount)
    let desk = ground.desk
    let place = desk.path("second")
    try Kernel.mkdir(place)
    try Kernel.makeFile(ground.path + "/file", noise(3000))
    let limit = try #require(ThreadLimit())
    try limit.take(desk.agentProcess())
    defer { try? limit.open() }
    var codes: Set<Int32> = []
    // Some more than a mount and the command take.
    for further in 0..<(2 * ProcessInfo.processInfo.activeProcessorCount + 12) {
      try limit.close(but: further)
      let outcome = try desk.run("coffer", ["mount", place])
      codes.insert(outcome.code)
      if outcome.code == 0 {
        #expect(try Kernel.content(place + "/file") == noise(3000))
        // The thread that answered the mount may not have ended yet, and this takes one as well.
        try limit.open()
        try desk.served("unmount", place)
      } else {
        expect(outcome, code: 75, says: ["no more threads"])
      }
      #expect(try Handle(place, O_RDONLY | O_DIRECTORY).listing().allSatisfy(\.isDots), "\(further)")
      try limit.open()
    }
    #expect(codes == [0, 75])
    #expect(try Kernel.content(ground.path + "/file") == noise(3000))
    try end(desk)
  }
}
