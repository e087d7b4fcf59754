import CofferSystem
import CofferTestSupport
import Foundation
import Glibc
import Synchronization
import Testing

@testable import coffer

/// A mount, from the command that makes it to what takes it away.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
final class MountTests: MountDesk {
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

  /// Whoever owns a folder above it may have the path lead elsewhere at any moment.
  @Test(.enabled(if: geteuid() == 0, "others mount by a helper that looks itself"))
  func `root mounts on an empty folder, wherever its path leads by then`() throws {
    try shell("mkdir -p above/spot elsewhere/spot && touch elsewhere/spot/file && ln -s elsewhere link")
    try desk.unlock()
    let (above, link) = (desk.path("above"), desk.path("link"))
    for turn in 0..<40 {
      let isOver = Atomic(turn == 0)
      let hasEnded = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        while !isOver.load(ordering: .relaxed) { try? Kernel.rename(above, link, flags: RenameFlag.exchange) }
        hasEnded.signal()
      }
      let outcome = try desk.run("coffer", ["mount", "above/spot"])
      isOver.store(true, ordering: .relaxed)
      hasEnded.wait()
      if try Kernel.stat(above).kind == S_IFLNK { try Kernel.rename(above, link, flags: RenameFlag.exchange) }
      let mounts = try KernelFile.text(of: "/proc/self/mountinfo")
      #expect(!mounts.contains(" \(desk.path("elsewhere/spot")) "))
      // Where it fails nothing is left.
      #expect(mounts.contains(" \(above)/spot ") == (outcome.code == 0), "\(outcome.errors)")
      // Where nobody exchanges anything it is mounted; in the other turns it may be, or not.
      #expect(turn > 0 || outcome.code == 0, "\(outcome.errors)")
      guard outcome.code == 0 else { continue }
      #expect(try desk.agentStatus()?["mounts"] as? [String] == [above + "/spot"])
      try desk.served("unmount", "above/spot")
      #expect(try desk.agentStatus()?["mounts"] as? [String] == [])
    }
  }

  @Test func `names that are not UTF-8, or would steer a terminal, are told of in words`() throws {
    let odd = try desk.shell(
      "d=$(printf 'u\\377') && mkdir \"$d\" && cd \"$d\" && coffer mount . --passcode-file ../passcode")
    #expect(odd.code == 64 && odd.errors.contains("is not UTF-8"), "\(odd.errors)")
    let named = try desk.shell("coffer mount \"$(printf 'u\\377')\"")
    #expect(named.code == 64 && named.errors.contains("is not valid UTF-8"), "\(named.errors)")
    try desk.unlock()
    try desk.unserved(66, "no\u{fffd}where: no such folder", "mount", "no\u{1b}where")
    // What it is ended with is for a shell, and does so.
    try makeFolder("a\u{1b}[31m\u{202e}é")
    let mounted = try desk.onTerminal("mount", "a\u{1b}[31m\u{202e}é", typed: "")
    let command = try #require(mounted.output.firstMatch(of: /end it with: (coffer unmount [^\r\n]*)/)).1
    #expect(command.unicodeScalars.allSatisfy { $0.value >= 32 && $0 != "\u{202e}" }, "\(command)")
    let ended = try desk.shell(String(command))
    #expect(ended.code == 0 && ended.errors == "coffer: unmounted\n", "\(command): \(ended.errors)")
    for text in ["plain", "two words", "it's", "$HOME `x` \\n", "\u{1b}'\\x41\n\u{202e}é$(x)", ""] {
      #expect(try desk.shell("printf %s \(text.quotedForShell)").output == text)
    }
  }

  @Test func `a result that cannot be written does not hide that it is mounted`() throws {
    let outcome = try desk.shell("coffer mount mnt --passcode-file passcode > /dev/full")
    #expect(outcome.code == 74, "\(outcome.errors)")
    #expect(outcome.errors.contains("it is mounted all the same"), "\(outcome.errors)")
    #expect(try isMounted)
  }

  @Test func `a folder given for the passcode's file is named`() throws {
    let outcome = try desk.run("coffer", ["mount", "mnt", "--passcode-file", "second"])
    #expect(outcome.code == 64 && outcome.errors.contains("second is a folder"), "\(outcome.errors)")
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

  /// The kernel shows what is being written to whoever maps it, before it knows whether the write is refused.
  @Test func `what a refused write brought stays in no mapping`() throws {
    try desk.done("put", "-", "/file", input: noise(64 << 10))
    try desk.done("mount", "mnt")
    let program = try desk.start(
      "/usr/bin/python3",
      [
        "-c",
        """
        import errno, mmap, os, sys, threading, time
        size = 64 << 10
        file = os.open("mnt/file", os.O_RDWR)
        mapping = memoryview(mmap.mmap(file, size, prot=mmap.PROT_READ))
        ends = os.pipe()
        def byte(place):
            try: os.write(ends[1], mapping[place:place + 1])
            except OSError as error:
                if error.errno != errno.EFAULT: raise
                return None
            return os.read(ends[0], 1)[0]
        places = range(0, size, 4096)
        print(len([place for place in places if byte(place) is not None]), flush=True)
        sys.stdin.readline()
        refused = 0
        def write():
            global refused
            for turn in range(400):
                for place in places:
                    try: os.pwrite(file, b"w" * 4096, place)
                    except OSError as error: refused += error.errno == errno.EACCES
        writer = threading.Thread(target=write)
        writer.start()
        while writer.is_alive():
            for place in places: byte(place)
        end = time.monotonic() + 20
        while time.monotonic() < end and any(byte(place) is not None for place in places): os.sched_yield()
        print(refused, [byte(place) for place in places].count(None), flush=True)
        """,
      ])
    #expect(program.line() == "16\n")
    try desk.served("lock", "--now")
    #expect(program.send(Array("locked\n".utf8)))
    #expect(program.line() == "6400 16\n")
    program.endInput()
    #expect(program.wait().code == 0)
    try desk.unlock()
    #expect(try desk.read("mnt/file") == noise(64 << 10))
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
    // Where it is for an unlocked vault alone, the lock ends it.
    let rule: [String: Any] = [
      "id": "unlocked", "effect": "forbid", "actions": ["mount"],
      "conditions": [["kind": "deviceUnlocked", "not": true] as [String: Any]],
    ]
    #expect(try await server.request("POST", "/v1/rules", json: rule).status == 201)
    try desk.served("policy", "refresh")
    #expect(try isMounted)
    try desk.served("lock", "--now")
    while try isMounted { sched_yield() }
    try desk.unserved(77, "locked", "mount", "mnt")
    try desk.unlock()
    try desk.served("mount", "mnt")
    #expect(try shell("cat mnt/file") == "text\n")
    try await server.allowOwner(["import"])
    try desk.served("policy", "refresh")
    #expect(try !isMounted)
    try desk.unserved(77, "mount", "mount", "mnt")
    #expect(server.stop().code == 0)
  }
}
