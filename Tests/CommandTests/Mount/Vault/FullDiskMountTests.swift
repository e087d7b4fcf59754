import CofferTestSupport
import Foundation
import Glibc
import Testing

/// A mounted vault on a disk without room: programs are told, nothing that is there is harmed, and what is removed makes
/// room again.
@Suite(
  .enabled(if: Ground.mountIsThere, Ground.missing),
  .enabled(if: MountedDisk.isPossible, "a disk that fills up is mounted for these tests, which needs root"))
final class FullDiskMountTests {
  let desk: Desk
  let disk: MountedDisk

  init() throws {
    desk = try Desk()
    disk = try desk.makeVault(onDiskOf: 16)
    try FileManager.default.createDirectory(atPath: desk.path("mnt"), withIntermediateDirectories: false)
    try desk.done("put", "-", "/large", input: noise(2 << 20))
    try desk.done("mount", "mnt")
  }

  deinit {
    _ = try? desk.run("coffer", ["unmount", "--force", desk.path("mnt")])
    _ = try? desk.run("coffer", ["agent", "stop", "--force"])
  }

  /// Writes until there is no room; prints what ended it, and how much was synced before.
  private static let filler = """
    import errno, os
    synced = 0
    file = os.open("mnt/filler", os.O_CREAT | os.O_RDWR)
    try:
        while True:
            os.pwrite(file, b"%07d\\n" % (synced // 8) * 8192, synced)
            os.fsync(file)
            synced += 65536
    except OSError as error: print(errno.errorcode[error.errno], synced)
    try: os.close(file)
    except OSError as error: print(errno.errorcode[error.errno])
    """

  @Test func `a program that fills the disk is told so, and what it synced before is there`() throws {
    let words = try shell("python3 -c '\(Self.filler)'").split(whereSeparator: \.isWhitespace)
    #expect(words.first == "ENOSPC")
    let synced = try #require(words.count > 1 ? Int(words[1]) : nil)
    #expect(synced > 4 << 20)
    try expectIntact(filler: synced)
    // By what a removal makes, which is seen at once.
    try shell("rm mnt/filler")
    let space = try Kernel.fileSystem(desk.path("mnt"))
    #expect(Int(space.f_bavail * space.f_frsize) >= synced)
    try desk.write("later", noise(1 << 20, seed: 3))
    try shell("cp later mnt/later && sync mnt/later")
    #expect(try desk.read("mnt/later") == noise(1 << 20, seed: 3))
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    #expect(try desk.done("cat", "/later").bytes == noise(1 << 20, seed: 3))
  }

  /// Fills the disk, makes room in one way after the other, and writes with nothing in between.
  private static let replacer = """
    import os

    class Closing:
        def __init__(self, name): self.file = os.open(name, os.O_CREAT | os.O_RDWR)
        def __enter__(self): return self.file
        def __exit__(self, *_): os.close(self.file)

    def fill(file, piece):
        count = 0
        try:
            while True: count += os.pwrite(file, piece, count)
        except OSError: return count

    for number in range(80):
        way = ["unlinked", "replaced", "closed last", "filled last"][number % 4]
        piece = os.urandom(1 << 18)
        with Closing("mnt/later") as later:
            with Closing("mnt/filler") as filler:
                if way == "filled last": os.unlink("mnt/filler")
                count = fill(filler, piece)
                assert count > 4 << 20, f"{way}, round {number}: {count}"
                if way == "closed last": os.unlink("mnt/filler")
                elif way != "filled last":
                    try: os.fsync(filler)
                    except OSError: pass
            if way == "unlinked": os.unlink("mnt/filler")
            if way == "replaced": os.rename("mnt/small", "mnt/filler")
            for place in range(0, count - (3 << 20), len(piece)):
                try: os.pwrite(later, piece, place)
                except OSError as error: raise Exception(f"{way}, round {number}: at {place} of {count}") from error
            space = os.statvfs("mnt")
            assert space.f_bavail * space.f_frsize > 1 << 20, f"{way}, round {number}: {space.f_bavail}"
        os.unlink("mnt/later")
        if way == "replaced": os.unlink("mnt/filler")
        elif way == "unlinked":
            with open("mnt/small", "w") as small: small.write("small")
    """

  /// The kernel lets go of what has lost its last name a moment after the program has gone on.
  ///
  /// By a process of its own: what starts another has its files open there, too, until that one's program begins.
  @Test func `what a program removes makes room for what it writes next`() throws {
    try desk.write("replacer", [UInt8](Self.replacer.utf8))
    // Both processors have something else to do.
    try shell(
      """
      (while :; do :; done) & first=$!; (while :; do :; done) & second=$!
      python3 replacer; code=$?
      kill $first $second; wait; exit $code
      """)
  }

  @Test func `room is asked for only for what is not stored`() throws {
    let count = 6 << 20
    try Kernel.makeFile(desk.path("mnt/file"), noise(count))
    let file = try Handle(desk.path("mnt/file"), O_RDWR)
    try file.sync()
    let space = try Kernel.fileSystem(desk.path("mnt"))
    #expect(Int(space.f_bavail * space.f_bsize) < count)
    try file.change(RangeChange.allocate, 0, count)
    try CallError.check(posix_fallocate(file.number, 100, count - 100))
    for _ in 0..<2 { try file.change(RangeChange.allocate, 0, count + (1 << 20)) }
    #expect(throws: CallError(ENOSPC)) { try file.change(RangeChange.keepSize, 0, 3 * count) }
    #expect(throws: CallError(ENOSPC)) { try file.change(RangeChange.allocate, 4 * count, count) }
    // What was stored once, and is not any more.
    try file.change(RangeChange.punchHole | RangeChange.keepSize, 1 << 20, 1 << 20)
    try file.sync()
    try file.change(RangeChange.allocate, 0, count)
    #expect(try file.stat().size == count + (1 << 20))
  }

  @Test func `an agent that is killed on a full disk leaves what was synced`() throws {
    let words = try shell("python3 -c '\(Self.filler)'").split(whereSeparator: \.isWhitespace)
    let synced = try #require(words.count > 1 ? Int(words[1]) : nil)
    kill(try desk.agentProcess(), SIGKILL)
    while try !desk.run("/bin/sh", ["-c", "ls mnt"]).errors.contains("not connected") { sched_yield() }
    try desk.served("unmount", "mnt")
    try desk.done("mount", "mnt")
    try expectIntact(filler: synced)
  }

  @Test func `names too are refused where there is no room for them, and all who asked before keep theirs`() throws {
    // Nothing but the vault uses the disk, so that its own reserve is what is left.
    try disk.fill()
    let made = try shell(
      """
      i=0; while { mkdir mnt/folder-$i && sync mnt; } 2> refusal; do i=$((i + 1)); done; echo $i
      grep -o 'No space left on device' refusal
      """)
    #expect(made.hasSuffix("\nNo space left on device\n"), "\(made)")
    #expect(try desk.read("mnt/large") == noise(2 << 20))
    try desk.remove("disk/filler")
    try shell("echo text > mnt/text && sync mnt/text && rmdir mnt/folder-* 2>/dev/null; cat mnt/text")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    #expect(try desk.done("cat", "/text").output == "text\n")
  }

  /// Fills the disk while a program has written what waits in memory for its place there.
  private func fillBesideOpenFile() throws {
    try shell(
      """
      exec 9> mnt/open; head -c 400000 /dev/zero | tr '\\0' x >&9
      cat /dev/zero > disk/filler 2>/dev/null; exec 9>&-
      """)
  }

  @Test func `an unmount says what it could not store, and the agent stores it when there is room`() throws {
    try fillBesideOpenFile()
    let refused = try desk.run("coffer", ["unmount", "mnt"])
    #expect(refused.code == 75)
    #expect(refused.errors.contains("disk is full"))
    try desk.remove("disk/filler")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    #expect(try desk.done("cat", "/open").bytes == [UInt8](repeating: 120, count: 400_000))
  }

  /// - Parameter isForced: the person gives up what is not stored; else they make room, after which all of it is there.
  @Test(arguments: [false, true])
  func `an agent does not end on a full disk before somebody gives up what would be lost`(isForced: Bool) throws {
    try shell("echo text > mnt/text && sync mnt/text")
    #expect(try desk.agentStatus()?["waitsForRoom"] as? Bool == false)
    try fillBesideOpenFile()
    let process = try desk.agentProcess()
    let refused = try desk.run("coffer", ["agent", "stop"])
    #expect(refused.code == 73 && refused.output.isEmpty, "\(refused.output)")
    #expect(refused.errors.contains("is not stored") && refused.errors.contains("agent stop --force"))
    // It goes on as before, and says what it waits for.
    #expect(try desk.agentProcess() == process)
    #expect(try desk.agentStatus()?["waitsForRoom"] as? Bool == true)
    #expect(try desk.served("agent", "status").output.contains("\nwaiting "))
    #expect(try Kernel.content(desk.path("mnt/open")) == [UInt8](repeating: 120, count: 400_000))
    if isForced {
      let stopped = try desk.run("coffer", ["agent", "stop", "--force"])
      #expect(stopped.code == 73, "\(stopped.output)")
      #expect(stopped.errors.contains("what it could not store is lost"), "\(stopped.errors)")
      try desk.remove("disk/filler")
    } else {
      try desk.remove("disk/filler")
      try desk.served("agent", "stop")
      #expect(try desk.done("cat", "/open").bytes == [UInt8](repeating: 120, count: 400_000))
    }
    #expect(try desk.agentStatus() == nil)
    try desk.done("verify", "--deep")
    #expect(try desk.done("cat", "/text").output == "text\n")
  }

  /// The kernel forgets what it gives back and finds no room for.
  @Test(arguments: [
    "agent stop", "agent stop --force", "unmount --force mnt", "lock --now", "agent stop --force after umount -l",
    "unmount mnt after munmap",
  ])
  func `what is stored to a mapping and finds no room is not lost in silence`(_ command: String) throws {
    // More than finds room; or so little that the kernel gives nothing back before it is asked.
    let count = command == "agent stop" ? 256 << 10 : 6 << 20
    try Kernel.makeFile(desk.path("mnt/mapped"), noise(count))
    var file: Handle? = try Handle(desk.path("mnt/mapped"), O_RDWR)
    try file?.sync()
    var map: Mapping? = try Mapping(of: #require(file), count: count)
    // No program is told then.
    if command.hasPrefix("unmount mnt") { file = nil }
    func store() { for page in stride(from: 0, to: count, by: 4096) { map?[page..<(page + 4)] = Array("mine".utf8) } }
    // Else the kernel may have given back what is to be lost while there was room, or what is not while there was none.
    if command == "agent stop" { store() }
    try shell("cat /dev/zero > disk/filler 2>/dev/null; true")
    if command != "agent stop" { store() }
    if command.hasSuffix("umount -l") { try #require(desk.run("/usr/bin/fusermount3", ["-uz", "mnt"]).code == 0) }
    if command.hasSuffix("munmap") { map = nil }
    let words = command.split(separator: " ").map(String.init)
    let ended = try desk.run("coffer", Array(words.prefix { $0 != "after" }))
    if command == "agent stop" {
      // Nothing is lost yet.
      #expect(ended.code == 73 && ended.errors.contains("coffer agent stop --force"), "\(ended.errors)")
      try desk.remove("disk/filler")
      try file?.sync()
      try desk.served("agent", "stop")
      let content = try desk.done("cat", "/mapped").bytes
      #expect(stride(from: 0, to: count, by: 4096).allSatisfy { Array(content[$0..<($0 + 4)]) == Array("mine".utf8) })
    } else {
      #expect(ended.code == (command == "lock --now" ? 0 : 73), "\(ended.errors)")
      let said = ended.output + ended.errors
      #expect(said.contains("stored to mappings of files could not be stored, and is lost"), "\(said)")
      try desk.remove("disk/filler")
      _ = try desk.run("coffer", ["agent", "stop", "--force"])
      try desk.done("verify", "--deep")
      #expect(try desk.done("cat", "/large").bytes == noise(2 << 20))
    }
    withExtendedLifetime(map) {}
  }

  @Test func `what finds no room when it is given back does not take a file's place`() throws {
    // So little that the kernel gives nothing back before it is asked.
    let count = 1 << 20
    try Kernel.makeFile(desk.path("mnt/new"), noise(count))
    try Kernel.makeFile(desk.path("mnt/kept"), "kept\n")
    let file = try Handle(desk.path("mnt/new"), O_RDWR)
    try file.sync()
    let map = try Mapping(of: file, count: count)
    try shell("cat /dev/zero > disk/filler 2>/dev/null; true")
    for page in stride(from: 0, to: count, by: 4096) { map[page..<(page + 4)] = Array("mine".utf8) }
    #expect(throws: CallError(ENOSPC)) { try Kernel.rename(desk.path("mnt/new"), desk.path("mnt/kept")) }
    #expect(try Kernel.text(desk.path("mnt/kept")) == "kept\n")
    #expect(try desk.agentStatus()?["pagesLost"] as? Bool == true)
    // Who has heard of it may have it so.
    try desk.remove("disk/filler")
    try Kernel.rename(desk.path("mnt/new"), desk.path("mnt/kept"))
    withExtendedLifetime(map) {}
  }

  @Test(.enabled(if: geteuid() == 0, "only root may make a name space of mounts for itself"))
  func `what is lost is lost for who sees the mount elsewhere, too`() throws {
    let count = 6 << 20
    try Kernel.makeFile(desk.path("mnt/mapped"), noise(count))
    let file = try Handle(desk.path("mnt/mapped"), O_RDWR)
    try file.sync()
    let map = try Mapping(of: file, count: count)
    let elsewhere = try desk.startShell(
      """
      exec unshare --mount --propagation private sh -c 'echo ready; read line
        coffer unmount --json mnt; echo $?; rm disk/filler; coffer unmount --json mnt; echo $?'
      """)
    try #require(elsewhere.line() == "ready\n")
    try shell("cat /dev/zero > disk/filler 2>/dev/null; true")
    for page in stride(from: 0, to: count, by: 4096) { map[page..<(page + 4)] = Array("mine".utf8) }
    try desk.unserved(73, "is lost", "unmount", "--force", "mnt")
    elsewhere.endInput()
    let told = elsewhere.wait()
    #expect(told.output == "73\n66\n" && told.errors.contains("is lost"), "\(told)")
    withExtendedLifetime(map) {}
  }

  @Test func `what is lost when nobody waits for the lock is shown by the agent until somebody is told`() throws {
    let count = 6 << 20
    try Kernel.makeFile(desk.path("mnt/mapped"), noise(count))
    var file: Handle? = try Handle(desk.path("mnt/mapped"), O_RDWR)
    try file?.sync()
    var map: Mapping? = try Mapping(of: #require(file), count: count)
    try shell("cat /dev/zero > disk/filler 2>/dev/null; true")
    for page in stride(from: 0, to: count, by: 4096) { map?[page..<(page + 4)] = Array("mine".utf8) }
    // The kernel may give some of it back before.
    kill(try desk.agentProcess(), SIGUSR1)
    #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
    for _ in 0..<2 {
      #expect(try desk.agentStatus()?["pagesLost"] as? Bool == true)
      #expect(try desk.served("agent", "status").output.contains("\nlost "))
    }
    #expect(try desk.served("lock").output.contains("is lost"))
    let asked = try desk.served("lock", "--json").bytes
    #expect((try JSONSerialization.jsonObject(with: Data(asked)) as? [String: Any])?["pagesLost"] as? Bool == true)
    // The mount may be ended by who does not know the vault, and the loss does not end with it.
    map = nil
    file = nil
    try #require(desk.run("/usr/bin/fusermount3", ["-u", "mnt"]).code == 0)
    while try desk.agentStatus()?["mounts"] as? [String] != [] { sched_yield() }
    #expect(try desk.agentStatus()?["pagesLost"] as? Bool == true)
    try desk.remove("disk/filler")
    try desk.unserved(73, "is lost", "agent", "stop")
    #expect(try desk.agentStatus() == nil)
  }

  @Test func `a backup that would lack what waits is refused by the name of the disk that is full`() throws {
    try fillBesideOpenFile()
    try desk.unserved(73, "the disk of the vault, or of its key store, is full", "backup", "copy")
    #expect(!desk.exists("copy"))
    try desk.remove("disk/filler")
    try desk.served("backup", "copy")
    #expect(try desk.done("cat", "/open", "--vault", "copy").bytes == [UInt8](repeating: 120, count: 400_000))
  }

  @Test func `a command is not refused for what a program could not store`() throws {
    try fillBesideOpenFile()
    try desk.served("rm", "/large")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    #expect(try desk.done("cat", "/open").bytes == [UInt8](repeating: 120, count: 400_000))
  }

  @Test func `a program is told at once, and what it wrote and nobody synced makes room when it is removed`() throws {
    #expect(try shell("dd if=/dev/urandom of=mnt/filler bs=64k count=1000 2>&1 || rm mnt/filler").contains("No space"))
    try shell("echo text > mnt/text && sync mnt/text")
    try desk.write("later", noise(8 << 20, seed: 3))
    try shell("cp later mnt/later && sync mnt/later")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    #expect(try desk.done("cat", "/later").bytes == noise(8 << 20, seed: 3))
  }

  @Test func `many files that nobody synced are refused when there is no room, and go again`() throws {
    try shell(
      """
      mkdir mnt/many; i=0
      while head -c 90000 /dev/zero > mnt/many/$i; do i=$((i + 1)); test $i -lt 1000 || exit 1; done 2> refusal
      grep -q 'No space left on device' refusal && cat mnt/many/0 | cmp -n 90000 - /dev/zero && rm -r mnt/many
      """)
    try disk.fill()
    try shell("rm mnt/large && sync mnt")
    try desk.remove("disk/filler")
    try desk.write("later", noise(8 << 20, seed: 3))
    try shell("cp later mnt/later && sync mnt/later")
    try desk.served("agent", "stop")
    try desk.done("verify", "--deep")
    #expect(try desk.done("ls").output == "later\n")
  }

  @discardableResult
  private func shell(_ line: String) throws -> String {
    let outcome = try desk.shell(line)
    #expect(outcome.code == 0, "\(line): \(outcome.errors)")
    return outcome.output
  }

  private func expectIntact(filler count: Int, sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try desk.read("mnt/large") == noise(2 << 20), sourceLocation: sourceLocation)
    let filler = try desk.read("mnt/filler")
    #expect(filler.count >= count, sourceLocation: sourceLocation)
    for place in stride(from: 0, to: count, by: 65536) {
      let line = Array((String(format: "%07d", place / 8) + "\n").utf8)
      #expect(filler[place..<(place + 8)].elementsEqual(line), sourceLocation: sourceLocation)
      #expect(filler[(place + 65528)..<(place + 65536)].elementsEqual(line), sourceLocation: sourceLocation)
    }
  }
}
