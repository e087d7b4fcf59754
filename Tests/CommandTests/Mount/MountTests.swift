import CofferTestSupport
import Foundation
import Glibc
import Testing

/// Whether this system can mount at all; the tests that need it say so.
enum Fuse {
  static let isThere = access("/dev/fuse", R_OK | W_OK) == 0

  /// Whether whoever makes a name space may mount in it.
  static let isThereInNameSpace: Bool = {
    let program = Process()
    program.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    program.arguments = ["--user", "--map-root-user", "--mount", "test", "-w", "/dev/fuse"]
    guard (try? program.run()) != nil else { return false }
    program.waitUntilExit()
    return program.terminationStatus == 0
  }()
}

/// A vault that is mounted, from the first `coffer mount` to the last, whatever ends it.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
final class MountTests {
  let desk: Desk

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    for name in ["mnt", "second"] { try makeFolder(name) }
  }

  deinit {
    for name in ["mnt", "second"] { _ = try? desk.run("coffer", ["unmount", "--force", desk.path(name)]) }
    _ = try? desk.run("coffer", ["agent", "stop"])
  }

  private func makeFolder(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: desk.path(name), withIntermediateDirectories: false)
  }

  /// What a shell's command in the desk's folder prints; it must end with 0.
  @discardableResult
  private func shell(_ command: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
    let outcome = try desk.run("/bin/sh", ["-c", command])
    #expect(outcome.code == 0, "\(command): \(outcome.errors)", sourceLocation: sourceLocation)
    return outcome.output
  }

  private func fails(_ command: String, _ says: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let outcome = try desk.run("/bin/sh", ["-c", command])
    #expect(outcome.code != 0 && outcome.errors.contains(says), "\(outcome.errors)", sourceLocation: sourceLocation)
  }

  private var isMounted: Bool {
    get throws { try String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8).contains(desk.path("mnt") + " ") }
  }

  @Test func `a mount says that a running agent keeps its settings`() throws {
    #expect(try !desk.done("mount", "--idle-lock", "20", "mnt").errors.contains("settings"))
    #expect(try !desk.done("mount", "--idle-lock", "20", "second").errors.contains("settings"))
    try desk.done("unmount", "second")
    let errors = try desk.done("mount", "--idle-lock", "5", "second").errors
    #expect(errors.contains("keeps its settings: it locks after 20"))
  }

  @Test func `a mount starts the agent, shows the vault, and what was written stays when it ends`() throws {
    try desk.done("put", "-", "/before", input: noise(300_000))
    #expect(try desk.done("mount", "mnt").output.contains("coffer unmount \(desk.path("mnt"))"))
    #expect(try desk.agentStatus()?["mounts"] as? [String] == [desk.path("mnt")])
    #expect(try desk.read("mnt/before") == noise(300_000))
    try shell("mkdir mnt/folder && cp out/../passcode mnt/folder/copy && echo text > mnt/small")
    #expect(try desk.served("ls").output == "before\nfolder/\nsmall\n")
    #expect(try desk.served("unmount", "mnt").errors.contains("unmounted"))
    #expect(try !isMounted)
    #expect(try desk.served("cat", "/small").output == "text\n")
    try desk.unserved(66, "no vault is mounted there", "unmount", "mnt")
    // Again, and by another program.
    try desk.served("mount", "mnt")
    #expect(try shell("cat mnt/small") == "text\n")
    try shell("umount mnt 2>/dev/null || fusermount3 -u mnt")
    while let mounts = try desk.agentStatus()?["mounts"] as? [String], !mounts.isEmpty { sched_yield() }
    try desk.served("agent", "stop")
    #expect(try desk.done("verify", "--deep").output.contains("damaged    nothing"))
  }

  @Test func `what cannot be mounted on is refused, before a passcode is asked for`() throws {
    try shell("mkdir full && touch full/file && ln -s mnt link")
    for isServed in [false, true] {
      if isServed { try desk.unlock() }
      try desk.unserved(73, "not empty", "mount", "full")
      try desk.unserved(66, "no such folder", "mount", "absent")
      try desk.unserved(64, "no folder", "mount", "passcode")
      try shell("mkdir -p vault/inside")
      try desk.unserved(64, "on its own folder, or inside it", "mount", "vault/inside")
      #expect(try desk.agentStatus() == nil || isServed)
    }
    try desk.served("mount", "link")
    try desk.unserved(73, "mounted there already; end that first with: coffer unmount", "mount", "mnt")
    try desk.unserved(64, "is empty", "mount", "")
    try desk.unserved(64, "no vault", "unmount", "/proc")
    try desk.unserved(66, "no such file or folder in the vault", "mount", "second", "--folder", "/absent")
    try desk.served("unmount", "link")
  }

  @Test func `an agent that was started for a mount ends where nothing can be mounted`() throws {
    for (folder, says) in [("/absent", "--folder: no such"), ("/file", "--folder: not a folder")] {
      try desk.done("put", "passcode", "/file")
      try desk.refused(66, says, running: ["mount", "--folder", folder, "mnt"])
      #expect(try desk.agentStatus() == nil)
    }
    // Not one that was there.
    try desk.unlock()
    try desk.unserved(66, "--folder: no such", "mount", "--folder", "/absent", "mnt")
    #expect(try desk.agentStatus() != nil)
  }

  @Test func `who ends a mount that is used hears by what`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/folder")
    let user = try desk.start("/bin/sh", ["-c", "cd mnt/folder && echo there && read line"])
    #expect(user.line() == "there\n")
    let refused = try desk.run("coffer", ["unmount", "mnt"])
    #expect(refused.code == 75)
    #expect(refused.errors.contains("--force"), "\(refused.errors)")
    // A program's name may be that of a file in the vault: it goes to a person alone.
    let number = try #require(refused.errors.firstMatch(of: /\(process ([0-9]+)\)/)).1
    #expect(!refused.errors.contains("sh \(number)"))
    let onTerminal = try desk.onTerminal("unmount", "mnt", typed: "")
    #expect(onTerminal.output.contains("(sh \(number))"), "\(onTerminal.output)")
    #expect(user.send(Array("\n".utf8)))
    _ = user.wait()
    try desk.served("mount", "--folder", "/folder", "mnt/folder")
    try desk.unserved(75, "something else is mounted", "unmount", "mnt")
    try desk.served("umount", "mnt/folder")
    try desk.served("umount", "mnt")
  }

  @Test func `other commands' changes are seen at once, whatever the kernel remembers`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/folder && echo one > mnt/folder/file && ls mnt/folder && ! stat mnt/folder/new 2>/dev/null")
    try desk.served("put", "passcode", "/folder/new")
    #expect(try shell("ls mnt/folder; cat mnt/folder/new") == "file\nnew\n\(Desk.passcode)\n")
    try desk.write("other", "two\n")
    try desk.served("put", "other", "/folder/file")
    #expect(try shell("cat mnt/folder/file") == "two\n")
    try desk.served("mv", "/folder/new", "/moved")
    try fails("cat mnt/folder/new", "No such file")
    #expect(try shell("cat mnt/moved; ls mnt; ls mnt/folder") == "\(Desk.passcode)\nfolder\nmoved\nfile\n")
    try desk.served("rm", "-r", "/folder")
    #expect(try shell("ls mnt") == "moved\n")
    // Through the agent and its own mount.
    try desk.served("put", "mnt/moved", "/again")
    #expect(try shell("cat mnt/again") == Desk.passcode + "\n")
    try desk.served("get", "/again", "mnt/once-more")
    #expect(try desk.served("cat", "/once-more").output == Desk.passcode + "\n")
  }

  /// It would wait for what waits for it.
  @Test func `a backup into a mount of its own vault is refused`() throws {
    try desk.done("mkdir", "/folder")
    try desk.done("mount", "mnt")
    try desk.served("mount", "--folder", "/folder", "second")
    try shell("mkdir mnt/empty && ln -s mnt/folder link")
    let places = ["mnt/new", "mnt/empty", "mnt/empty/new", "mnt", "second", "second/new", "link/new"]
    for place in places + [desk.path("mnt/new")] {
      try desk.unserved(64, "a backup must be outside the vault", "backup", place)
    }
    #expect(try shell("ls -R mnt") == "mnt:\nempty\nfolder\n\nmnt/empty:\n\nmnt/folder:\n")
    // By a way that does not lead through the mount's root.
    if MountedDisk.isPossible {
      try shell("mkdir -p bound mnt/folder && mount --bind mnt/folder bound")
      defer { _ = try? desk.run("/bin/sh", ["-c", "umount bound"]) }
      try desk.unserved(64, "a backup must be outside the vault", "backup", "bound/copy")
    }
    try desk.served("backup", "copy")
  }

  @Test(.enabled(if: MountedDisk.isPossible, "only root can take a mount out of the tree like that"))
  func `a mount that lives on outside the tree keeps no backup away`() throws {
    try desk.done("mount", "mnt")
    try shell("echo text > mnt/file")
    let user = try desk.start(
      "/usr/bin/python3", ["-c", "import sys; file = open('mnt/file'); print('open', flush=True); sys.stdin.read()"])
    #expect(user.line() == "open\n")
    try shell("umount -l mnt")
    #expect(try desk.served("agent", "status").output.contains("taken out of the tree, but programs use it still\n"))
    try desk.served("backup", "copy")
    #expect(try desk.done("verify", "--vault", "copy").output.contains("damaged    nothing"))
    user.endInput()
    #expect(user.wait().code == 0)
  }

  @Test func `two mounts show the same vault, a folder of it, or nothing that can be changed`() throws {
    try desk.done("mkdir", "/folder")
    try desk.done("mount", "mnt")
    // A program that copies a file onto itself does not notice.
    #expect(try desk.served("mount", "second").errors.contains("mounted on \(desk.path("mnt")) too"))
    try desk.served("unmount", "second")
    // Nor where it can only be changed by the other way.
    let told = try desk.served("mount", "--folder", "/folder", "--read-only", "second").errors
    #expect(told.contains("mounted on \(desk.path("mnt")) too"), "\(told)")
    try shell("echo one > mnt/folder/file")
    let status = try desk.served("agent", "status").output
    #expect(status.contains("\nfolder     \(desk.path("vault"))\n"), "\(status)")
    #expect(status.contains("\nmounted    \(desk.path("mnt"))\n"), "\(status)")
    #expect(status.contains("\nmounted    \(desk.path("second")), folder /folder, read only\n"), "\(status)")
    // A change by one mount is told to another a moment later.
    while try desk.run("/bin/sh", ["-c", "cat second/file"]).output != "one\n" { sched_yield() }
    try shell("echo longer > mnt/folder/file && mkdir mnt/folder/inner")
    while try desk.run("/bin/sh", ["-c", "cat second/file"]).output != "longer\n" { sched_yield() }
    while try !shell("ls second").contains("inner") { sched_yield() }
    for command in ["echo x > second/file", "rm second/file", "mkdir second/new", "chmod 700 second/inner"] {
      try fails(command, "Read-only file system")
    }
    #expect(try shell("cd second/inner && cd .. && ls") == "file\ninner\n")
    try desk.served("unmount", "second")
    #expect(try shell("cat mnt/folder/file") == "longer\n")
  }

  @Test func `mounts through which nothing can be changed that both show are not warned of`() throws {
    for folder in ["/folder", "/folders"] { try desk.done("mkdir", folder) }
    try desk.done("mount", "--folder", "/folder", "mnt")
    #expect(try desk.served("mount", "--folder", "/folders", "second").errors == "")
    try desk.served("unmount", "second")
    // One that has another name by now is the same.
    try desk.served("mv", "/folder", "/folders/moved")
    for folder in ["/folders/moved", "/folders"] {
      #expect(
        try desk.served("mount", "--folder", folder, "second").errors.contains("mounted on \(desk.path("mnt")) too"))
      if folder != "/folders" { try desk.served("unmount", "second") }
    }
    for place in ["mnt", "second"] { try desk.served("unmount", place) }
    try desk.served("mount", "--read-only", "mnt")
    #expect(try desk.served("mount", "--read-only", "second").errors == "")
  }

  @Test(arguments: ["os.O_WRONLY | os.O_APPEND", "os.O_WRONLY", "os.O_RDWR"])
  func `what is written behind the end in one mount survives what is stored to a mapping in another`(
    access: String
  ) throws {
    try desk.done("mount", "mnt")
    try desk.served("mount", "second")
    let program = """
      import mmap, os
      for size, more in (1, 1), (100, 5000), (4095, 1), (4096, 10), (5000, 20000), (70000, 3):
          content = bytearray(b"o" * size)
          with open("mnt/file", "wb") as file: file.write(content)
          mapped = os.open("mnt/file", os.O_RDWR)
          mapping = mmap.mmap(mapped, size)
          other = os.open("second/file", \(access))
          for value in range(3):
              os.lseek(other, 0, os.SEEK_END)
              os.write(other, bytes([65 + value]) * more)
              content += bytes([65 + value]) * more
              for place in size // 2, size - 1:
                  mapping[place] = content[place] = 48 + value
                  mapping.flush()
                  for name in "mnt/file", "second/file":
                      with open(name, "rb") as file: found = file.read()
                      if found != content: print(name, size, more, value, len(found), len(content), found.count(0))
          # Back to an end that was told once.
          os.ftruncate(mapped, size)
          del content[size:]
          os.lseek(other, 0, os.SEEK_END)
          os.write(other, b"D" * 3 * more)
          content += b"D" * 3 * more
          mapping[size - 1] = content[size - 1] = 60
          mapping.flush()
          mapping[0] = content[0] = 61
          mapping.flush()
          for name in "mnt/file", "second/file":
              with open(name, "rb") as file: found = file.read()
              if found != content: print("cut", name, size, more, len(found), len(content), found.count(0))
          mapping.close(); os.close(mapped); os.close(other); os.unlink("second/file")
      print("tried")
      """
    #expect(try shell("python3 -c '\(program)'") == "tried\n")
  }

  @Test(.enabled(if: Fuse.isThereInNameSpace, "a user's name space is not there, or /dev/fuse is not ours in it"))
  func `a vault that is mounted in a name space of mounts shows there alone`() throws {
    try shell("mkfifo said heard")
    let outcome = try desk.shell(
      """
      unshare --user --map-root-user --mount bash -c '
        coffer mount mnt --passcode-file passcode && echo kept > mnt/file && cat mnt/file
        echo > said; read -r line < heard; coffer unmount mnt && coffer agent stop' &
      read -r line < said; ls mnt; grep -c " $PWD/mnt " /proc/self/mountinfo; echo > heard; wait $!
      """)
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.output.hasPrefix("mounted on \(desk.path("mnt"))"))
    #expect(outcome.output.hasSuffix("kept\n0\nthe agent has ended\n"), "\(outcome.output)")
    #expect(try desk.done("cat", "/file").output == "kept\n")
  }

  @Test func `locked, content is read from no page, descriptor or mapping, and an unlock brings it back`() throws {
    let content = noise(3 << 20, seed: 4)
    try desk.done("put", "-", "/file", input: content)
    try desk.done("put", "-", "/open-class", input: noise(9000))
    try desk.done("protect", "/open-class", "until-first-unlock")
    try desk.done("mount", "mnt")
    let reader = try desk.start(
      "/usr/bin/python3",
      [
        "-c",
        """
        import mmap, os, signal, sys
        file = os.open("mnt/file", os.O_RDWR)
        page = mmap.mmap(file, 4096, prot=mmap.PROT_READ)
        def look(name, body):
            try: print(name, body()[:1].hex(), flush=True)
            except OSError as error: print(name, error.strerror, flush=True)
        def mapped():
            child = os.fork()
            if child == 0:
                value = page[0]
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            return b"\\1" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS else b"\\0"
        for line in sys.stdin:
            look("read", lambda: os.pread(file, 10, 0))
            look("far", lambda: os.pread(file, 10, 2 << 20))
            look("lost", mapped)
            os.pwrite(file, b"after " + line.encode(), 100) if line == "write\\n" else None
        """,
      ])
    #expect(reader.send(Array("write\n".utf8)))
    let first = String(format: "%02x", content[0])
    let far = String(format: "%02x", content[2 << 20])
    #expect([reader.line(), reader.line(), reader.line()] == ["read \(first)\n", "far \(far)\n", "lost 00\n"])
    try desk.served("lock", "--now")
    #expect(reader.send(Array("look\n".utf8)))
    let refused = "Permission denied\n"
    #expect([reader.line(), reader.line(), reader.line()] == ["read \(refused)", "far \(refused)", "lost 01\n"])
    try fails("cat mnt/file", "Permission denied")
    try desk.unserved(77, "locked", "verify", "--deep")
    try fails("echo x > mnt/new", "Permission denied")
    #expect(try desk.read("mnt/open-class") == noise(9000))
    #expect(try shell("ls mnt") == "file\nopen-class\n")
    try desk.unlock()
    #expect(reader.send(Array("look\n".utf8)))
    #expect([reader.line(), reader.line(), reader.line()] == ["read \(first)\n", "far \(far)\n", "lost 00\n"])
    reader.endInput()
    #expect(reader.wait().code == 0)
    // What was written before the lock, and not synced, is there.
    var expected = content
    expected.replaceSubrange(100..<112, with: Array("after write\n".utf8))
    #expect(try desk.read("mnt/file") == expected)
  }

  @Test func `an agent that is killed leaves a mount that is said to be dead, and that can be cleared away`() throws {
    try desk.done("mount", "mnt")
    try shell("echo synced > mnt/file && sync mnt/file && echo renamed > mnt/t && sync mnt/t && mv mnt/t mnt/u")
    kill(try desk.agentProcess(), SIGKILL)
    // At first the connection counts as one that was aborted.
    while try !desk.run("/bin/sh", ["-c", "ls mnt"]).errors.contains("not connected") { sched_yield() }
    try desk.unserved(73, "coffer unmount", "mount", "mnt")
    try desk.served("unmount", "mnt")
    #expect(try !isMounted)
    #expect(try desk.done("verify", "--deep").output.contains("damaged    nothing"))
    try desk.done("mount", "mnt")
    #expect(try shell("cat mnt/file") == "synced\n")
  }

  @Test(arguments: ["stop", "force", "SIGTERM"])
  func `a mount that is in use ends with what was written, and lets nobody on`(_ how: String) throws {
    try desk.done("mount", "mnt")
    let writer = try desk.start(
      "/usr/bin/python3",
      [
        "-c",
        """
        import os, sys
        file = open("mnt/file", "w+b", buffering=0)
        file.write(b"x" * 100000)
        print("written", flush=True)
        sys.stdin.readline()
        try: print(len(os.pread(file.fileno(), 10, 0)))
        except OSError as error: print("refused")
        """,
      ])
    #expect(writer.line() == "written\n")
    try desk.unserved(75, "programs use files in it", "unmount", "mnt")
    #expect(try shell("cat mnt/file | wc -c") == "100000\n")
    let process = try desk.agentProcess()
    switch how {
    case "stop": try expectTold(by: desk.served("agent", "stop"))
    case "force":
      try expectTold(by: desk.served("unmount", "--force", "mnt"))
      // The kernel still has it, for the program.
      #expect(try desk.agentStatus()?["mounts"] as? [String] == [])
    default:
      kill(process, SIGTERM)
      while FileManager.default.fileExists(atPath: "/proc/\(process)/exe") { sched_yield() }
    }
    #expect(try !isMounted)
    #expect(writer.send(Array("\n".utf8)))
    #expect(writer.wait().output.hasSuffix("refused\n"))
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes == [UInt8](repeating: UInt8(ascii: "x"), count: 100_000))
  }

  @Test(.enabled(if: MountedDisk.isPossible, "only root may mount something else in there"))
  func `a mount with another one below is ended by force, and tells of who used it`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/below && mount -t tmpfs none mnt/below")
    try desk.unserved(75, "something else is mounted on a folder in it", "unmount", "mnt")
    // Nobody but the other mount.
    let quiet = try desk.served("unmount", "--force", "mnt").errors
    #expect(quiet == "coffer: unmounted\n", "\(quiet)")
    try desk.done("mount", "mnt")
    try shell("mount -t tmpfs none mnt/below")
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    try file.writeAll(noise(100_000))
    try expectTold(by: desk.served("unmount", "--force", "mnt"))
    #expect(try !isMounted)
    #expect(throws: (any Error).self) { try file.write("x") }
    #expect(try desk.done("cat", "/file").bytes == noise(100_000))
  }

  private func expectTold(
    by ended: RunningProgram.Outcome, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let told = "programs used files in the mount at \(desk.path("mnt")), which has ended (process "
    #expect(ended.errors.contains(told), "\(ended.errors)", sourceLocation: sourceLocation)
  }

  @Test(.enabled(if: geteuid() == 0, "only root may make a name space of mounts for itself"))
  func `an unmount says that it took the mount from programs in another name space of mounts`() throws {
    try desk.done("mount", "mnt")
    let program = try desk.start(
      "/usr/bin/unshare",
      [
        "--mount", "--propagation", "private", "python3", "-c",
        """
        import sys
        file = open("mnt/file", "w+b", buffering=0)
        file.write(b"x" * 1000)
        print("written", flush=True)
        sys.stdin.readline()
        try: file.write(b"x")
        except OSError: print("refused")
        """,
      ])
    #expect(program.line() == "written\n")
    // It waits for the kernel to let go of it.
    let ended = try desk.served("unmount", "mnt")
    #expect(ended.errors.contains("another name space of mounts"), "\(ended.errors)")
    #expect(program.send(Array("\n".utf8)))
    #expect(program.wait().output.hasSuffix("refused\n"))
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes == [UInt8](repeating: UInt8(ascii: "x"), count: 1000))
  }

  @Test func `a forced unmount tells of nobody where nobody is cut off, and says so where it cannot cut anybody off`()
    throws
  {
    try desk.unlock()
    // The shell stands in the folder below the mount.
    let quiet = try desk.shell("cd mnt && coffer mount . > /dev/null && coffer unmount --force .")
    #expect(quiet.code == 0 && quiet.errors == "coffer: unmounted\n", "\(quiet.errors)")
    try desk.done("mount", "mnt")
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    let taken = try desk.shell("unset COFFER_VAULT; coffer unmount --force mnt")
    #expect(taken.code == 0 && taken.errors.contains("go on to do so, until they end"), "\(taken.errors)")
    #expect(try !isMounted)
    try file.writeAll(noise(100_000))
    try desk.served("agent", "stop")
    #expect(throws: (any Error).self) { try file.write("x") }
    #expect(try desk.done("cat", "/file").bytes == noise(100_000))
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP, nil])
  func `in the foreground it stays until a signal ends it, or somebody else does, and stores what was written`(
    signal: Int32?
  ) throws {
    try desk.unlock()
    let mount = try desk.start("coffer", ["mount", "--foreground", "mnt"])
    #expect(mount.line().contains("mounted on"))
    #expect(try isMounted)
    // A program that has a file open does not keep a signal from ending it.
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    try file.writeAll(noise(100_000))
    if let signal { mount.signal(signal) } else { try desk.served("unmount", "--force", "mnt") }
    let ended = mount.wait()
    #expect(ended.code == signal.map { 128 + $0 } ?? 0, "\(ended.errors)")
    #expect(signal == nil || ended.errors.contains("unmounted. The agent goes on"), "\(ended.errors)")
    if signal != nil { expectTold(by: ended) }
    #expect(try !isMounted)
    #expect(throws: (any Error).self) { try file.write("x") }
    // It is stored, and not only in the agent's memory.
    kill(try desk.agentProcess(), SIGKILL)
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes == noise(100_000))
  }

  @Test func `who waits for a mount in the foreground does not keep the vault from being locked`() throws {
    try desk.unlock("--idle-lock", "0.01", "--grace", "0")
    let mount = try desk.start("coffer", ["mount", "--foreground", "mnt"])
    #expect(mount.line().contains("mounted on"))
    #expect(try desk.agentStatus("--until-locked")?["state"] as? String == "locked")
    mount.signal(SIGINT)
    #expect(mount.wait().code == 130)
  }

  @Test func `a company's policy lets the vault be mounted, and takes it away`() async throws {
    try desk.done("init", "--vault", "owned")
    let server = try RunningServer(at: desk)
    try desk.unlock()
    try desk.served("mount", "mnt")
    let joined = try desk.served("enroll", server.url, server.enrollmentCode())
    #expect(joined.errors.contains("the mount at \(desk.path("mnt")) has ended"), "\(joined.errors)")
    #expect(try !isMounted)
    try desk.served("agent", "stop")
    try desk.refused(77, "mount", running: ["mount", "mnt"])
    try await server.allowOwner(["import", "mount"])
    try desk.unlock()
    try desk.served("policy", "refresh")
    try desk.served("mount", "mnt")
    try shell("echo text > mnt/file")
    try await server.allowOwner(["import"])
    try desk.served("policy", "refresh")
    #expect(try !isMounted)
    try desk.unserved(77, "mount", "mount", "mnt")
    #expect(server.stop().code == 0)
  }
}
