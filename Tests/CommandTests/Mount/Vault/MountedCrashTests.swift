import CofferTestSupport
import Foundation
import Glibc
import Testing

/// A mounted vault whose agent is killed, or whose disk goes away, while programs write: what they synced is there, what
/// they renamed is there whole, and nobody has to repair anything.
@Suite(
  .serialized,
  .enabled(if: Ground.mountIsThere && LoopDisk.isPossible, "needs /dev/fuse, root and loop devices"),
  .enabled(if: LoopDisk.Kind.ext4.canBeMounted, "needs mkfs.ext4, and a kernel that mounts ext4"))
struct MountedCrashTests {
  enum Crash: String, CaseIterable { case killedAgent, lostDisk }

  private static let roundCount = ProcessInfo.processInfo.environment["COFFER_KILLS"].flatMap { Int($0) } ?? 4

  /// Writes files of a size and content that their number tells, and says what is durable: `synced` files for certain,
  /// `renamed` ones whole or not at all.
  private static let writer = """
    import os, sys
    def content(number): return (b"%d " % number) * (1 + number * 977 % 9000)
    round = int(sys.argv[1])
    os.makedirs(f"mnt/{round}")
    kept = open(f"mnt/{round}/log", "wb", buffering=0)
    number = 0
    try:
        while True:
            number += 1
            unsynced = open(f"mnt/{round}/noise-{number % 7}", "wb", buffering=0)
            unsynced.write(content(number))
            with open(f"mnt/{round}/new", "wb", buffering=0) as file:
                file.write(content(number))
                if number % 3: os.fsync(file.fileno())
            os.rename(f"mnt/{round}/new", f"mnt/{round}/file-{number % 20}")
            kept.write(b"%d\\n" % number)
            if number % 3 == 1:
                os.fsync(kept.fileno())
                folder = os.open(f"mnt/{round}", os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
                print(number, flush=True)
    except OSError:
        print("ended", flush=True)
    """

  /// Prints the highest number of the log, and of each file its number where it is whole.
  private static let reader = """
    import os, sys
    def content(number): return (b"%d " % number) * (1 + number * 977 % 9000)
    round = sys.argv[1]
    lines = open(f"mnt/{round}/log", "rb").read().split(b"\\n")
    print("log", int(lines[-2]) if len(lines) > 1 else 0, lines == [b"%d" % n for n in range(1, len(lines))] + [b""])
    for name in sorted(os.listdir(f"mnt/{round}")):
        if not name.startswith("file-"): continue
        found = open(f"mnt/{round}/{name}", "rb").read()
        number = int(found.split(b" ")[0] or b"0")
        print(name[5:], number, found == content(number) and number % 20 == int(name[5:]))
    """

  @Test(arguments: Crash.allCases)
  func `what programs synced in a mount survives, and what they renamed is whole`(_ crash: Crash) throws {
    let desk = try Desk()
    let disk = try LoopDisk(.ext4)
    try FileManager.default.createSymbolicLink(atPath: desk.path("disk"), withDestinationPath: disk.mountPoint)
    desk.environment["COFFER_VAULT"] = disk.mountPoint + "/vault"
    try FileManager.default.createDirectory(atPath: desk.path("mnt"), withIntermediateDirectories: false)
    try desk.makeVault()
    let seed = UInt64.random(in: 0 ... .max)
    var generator = SeededGenerator(seed: seed)
    for round in 0..<Self.roundCount {
      try desk.done("mount", "mnt")
      let program = try desk.start("/usr/bin/python3", ["-c", Self.writer, String(round)])
      var durable = 0
      for _ in 0..<Int.random(in: 1...25, using: &generator) {
        durable = Int(program.line().dropLast()) ?? durable
      }
      let agent = try desk.agentProcess()
      if crash == .lostDisk { try disk.shutDown() } else { kill(agent, SIGKILL) }
      // It hears of it by its next call. While its disk goes away a sync may be reported as done that was not: ext4 does so,
      // for any program.
      let last = program.wait().output
      if crash == .killedAgent { for line in last.split(separator: "\n") { durable = Int(line) ?? durable } }
      if crash == .lostDisk { kill(agent, SIGKILL) }
      while FileManager.default.fileExists(atPath: "/proc/\(agent)/exe") { sched_yield() }
      try desk.served("unmount", "mnt")
      if crash == .lostDisk { try disk.remount() }

      try desk.done("verify", "--deep")
      try desk.done("mount", "mnt")
      let found = try desk.run("/usr/bin/python3", ["-c", Self.reader, String(round)])
      try check(found, durable: durable, "seed \(seed), round \(round)")
      try desk.served("agent", "stop")
    }
  }

  private func check(_ outcome: RunningProgram.Outcome, durable: Int, _ comment: Comment) throws {
    #expect(outcome.code == 0, "\(comment): \(outcome.errors)")
    let lines = outcome.output.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(lines.allSatisfy { $0.last == "True" }, "\(comment): \(outcome.output)")
    func number(_ name: String) -> Int { lines.first { $0[0] == name }.flatMap { Int($0[1]) } ?? 0 }
    #expect(number("log") >= durable, comment)
    // Of each name the newest that was durable, or one that came later.
    for synced in stride(from: durable, to: max(0, durable - 20), by: -1) {
      #expect(number(String(synced % 20)) >= synced, "\(comment): \(synced) of \(durable)")
    }
  }
}
