import CofferTestSupport
import Foundation
import Glibc
import Testing

/// Mounts whose end somebody holds up, or that are not ended in the ordinary way.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
final class HeldUpEndTests: MountDesk {
  private static let isRoot = geteuid() == 0

  /// Lists a folder into memory that it never provides: the kernel holds the folder's page as long as it waits for that.
  private static let lister = """
    import ctypes, fcntl, mmap, os, platform, struct, sys, threading
    is_arm = platform.machine() == "aarch64"
    list_call, fault_call = (61, 282) if is_arm else (217, 323)
    system = ctypes.CDLL(None, use_errno=True).syscall
    folder = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)
    buffer = ctypes.create_string_buffer(65536)
    for _ in range(2):
      os.lseek(folder, 0, 0)
      while system(list_call, folder, buffer, 65536) > 0: pass
    os.lseek(folder, 0, 0)
    faults = system(fault_call, os.O_CLOEXEC)
    fcntl.ioctl(faults, 0xC018AA3F, struct.pack("QQQ", 0xAA, 0, 0))
    memory = mmap.mmap(-1, 65536)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(faults, 0xC020AA00, bytearray(struct.pack("QQQQ", address, 65536, 1, 0)))
    threading.Thread(target=lambda: system(list_call, folder, ctypes.c_void_p(address), 65536), daemon=True).start()
    os.read(faults, 32)
    print("held", flush=True)
    sys.stdin.read()
    os._exit(0)
    """

  @Test(
    .enabled(if: isRoot, "only root may provide memory to the kernel by itself"),
    arguments: [["unmount", "--force", "mnt"], ["agent", "stop"]])
  func `a program that holds up the kernel holds up no end`(_ command: [String]) throws {
    try desk.done("mount", "mnt")
    try desk.done("mount", "second")
    try shell("mkdir mnt/folder && echo text > mnt/folder/file && echo other > mnt/other")
    let program = try desk.start("/usr/bin/python3", ["-c", Self.lister, "mnt/folder"])
    #expect(program.line() == "held\n")
    let file = try Handle(desk.path("mnt/other"), O_RDONLY)
    let second = try Handle(desk.path("second/other"), O_RDONLY)
    #expect(try file.read(6, at: 0) == Array("other\n".utf8))
    let ended = try desk.run("coffer", command)
    #expect(ended.code == 0, "\(ended.errors)")
    #expect(try !isMounted)
    if command[0] == "agent" {
      // Of the first one nothing is answered any more until the program goes: what is left of the agent waits for it.
      #expect(throws: (any Error).self) { try second.read(6, at: 0) }
    } else {
      #expect(throws: (any Error).self) { try file.read(6, at: 0) }
      #expect(try second.read(6, at: 0) == Array("other\n".utf8))
    }
    program.signal(SIGKILL)
    _ = program.wait()
    #expect(throws: (any Error).self) { try file.read(6, at: 0) }
  }

  /// More folders than the kernel is told of by threads that may get stuck, and files that are read until the end.
  @Test(.enabled(if: isRoot, "only root may provide memory to the kernel by itself"))
  func `what is held up keeps no content readable`() throws {
    try desk.done("mount", "mnt")
    let files = try (0..<64).map { number in
      let path = desk.path("mnt/file-\(number)")
      try Kernel.makeFile(path, noise(4096, seed: UInt64(number)))
      return try Handle(path, O_RDONLY)
    }
    let programs = try (0..<6).map { number in
      try shell("mkdir mnt/folder-\(number) && echo text > mnt/folder-\(number)/file")
      let program = try desk.start("/usr/bin/python3", ["-c", Self.lister, "mnt/folder-\(number)"])
      #expect(program.line() == "held\n")
      return program
    }
    let ending = try desk.start("coffer", ["unmount", "--force", "mnt"])
    repeat {
      for file in files { _ = try? file.read(20, at: 0) }
    } while FileManager.default.fileExists(atPath: "/proc/\(ending.processID)/exe")
    #expect(ending.wait().code == 0)
    let readable = files.count { (try? $0.read(20, at: 0)) != nil }
    #expect(readable == 0)
    for program in programs {
      program.signal(SIGKILL)
      _ = program.wait()
    }
  }

  @Test(.enabled(if: isRoot, "only root may make a name space of mounts for itself"))
  func `nobody goes on in one mount while another is waited for`() throws {
    try desk.done("mount", "mnt")
    try desk.done("mount", "second")
    try shell("echo text > mnt/file")
    let program = try desk.start(
      "/usr/bin/unshare",
      [
        "--mount", "--propagation", "private", "python3", "-c",
        """
        import sys
        def can_read(place):
          try: return open(place + "/file").read() == "text\\n"
          except OSError: return False
        print(can_read("mnt") and can_read("second"), flush=True)
        while can_read("mnt") or can_read("second"): pass
        print("refused", flush=True)
        sys.stdin.read()
        """,
      ])
    #expect(program.line() == "True\n")
    let stop = try desk.start("coffer", ["agent", "stop"])
    #expect(program.line() == "refused\n")
    // The kernel keeps both for that name space, and is waited for.
    #expect(FileManager.default.fileExists(atPath: "/proc/\(stop.processID)/exe"))
    program.endInput()
    _ = program.wait()
    #expect(stop.wait().code == 0)
  }

  @Test(.enabled(if: isRoot, "only root may make a name space of mounts for itself"))
  func `an unmount ends the mount that is seen, and not another vault's at its path in another name space`() throws {
    try desk.done("init", "--vault", "other")
    let inside = try desk.startShell(
      """
      exec unshare --mount --propagation private bash -c '
      coffer mount --vault other --passcode-file passcode mnt >/dev/null && echo text > mnt/file && echo ready; read line
      cat mnt/file; read line; coffer agent stop --vault other'
      """)
    #expect(inside.line() == "ready\n")
    try desk.done("mount", "mnt")
    #expect(try desk.served("unmount", "mnt").errors == "coffer: unmounted\n")
    #expect(try !isMounted)
    #expect(inside.send(Array("\n".utf8)))
    #expect(inside.line() == "text\n")
    #expect(inside.send(Array("\n".utf8)))
    _ = inside.wait()
  }

  /// The same vault's or another's, at the path where the first one is seen in a name space of its own.
  @Test(.enabled(if: isRoot, "only root may make a name space of mounts for itself"), arguments: [false, true])
  func `an unmount in another name space ends no mount that lies at its path here`(_ isOther: Bool) throws {
    let vault = isOther ? ["--vault", "other"] : []
    defer {
      _ = try? desk.run("coffer", ["unmount", "--force", "mnt"])
      _ = try? desk.run("coffer", ["agent", "stop"] + vault)
    }
    if isOther { try desk.done("init", "--vault", "other") }
    try desk.done("mount", "second")
    try shell("mkdir second/folder && echo text > second/file && sync second/file")
    let inside = try desk.startShell(
      "exec unshare --mount --propagation private bash -c 'mount --bind second mnt; echo ready; read line; coffer unmount mnt 2>&1'"
    )
    #expect(inside.line() == "ready\n")
    let made = try desk.run(
      "coffer", ["mount", "mnt", "--passcode-file", "passcode"] + (isOther ? vault : ["--folder", "/folder"]))
    #expect(made.code == 0, "\(made.errors)")
    try shell("echo here > mnt/here")
    #expect(inside.send(Array("\n".utf8)))
    let ended = inside.wait()
    #expect(ended.code == 0 && ended.output.contains("stays mounted on \(desk.path("second"))\n"), "\(ended.output)")
    #expect(try isMounted)
    #expect(try shell("cat mnt/here second/file") == "here\ntext\n")
  }

  @Test func `an agent that ends leaves another vault's mount where its own was cut off`() throws {
    defer {
      for arguments in [["unmount", "--force", "mnt"], ["agent", "stop"]] {
        _ = try? desk.run("coffer", arguments + ["--vault", "other"])
      }
    }
    try desk.done("init", "--vault", "other")
    try desk.done("mount", "mnt")
    // It asks the agent until that is gone.
    let program = try desk.start(
      "/usr/bin/python3",
      [
        "-c",
        """
        import os, sys, threading
        folder = os.open("mnt", os.O_RDONLY | os.O_DIRECTORY)
        def ask():
          while True:
            try: os.stat("missing", dir_fd=folder)
            except OSError: pass
        for _ in range(2): threading.Thread(target=ask, daemon=True).start()
        print("asks", flush=True)
        sys.stdin.read()
        os._exit(0)
        """,
      ])
    #expect(program.line() == "asks\n")
    try desk.served("unmount", "--force", "mnt")
    try desk.done("mount", "--vault", "other", "mnt")
    let agent = try desk.agentProcess()
    try desk.served("agent", "stop")
    while FileManager.default.fileExists(atPath: "/proc/\(agent)/exe") { sched_yield() }
    #expect(try isMounted)
    try shell("echo text > mnt/file")
    program.endInput()
    _ = program.wait()
    #expect(try desk.served("cat", "--vault", "other", "/file").output == "text\n")
  }

  @Test func `an unmount that names no vault returns when what programs wrote is stored`() throws {
    try desk.done("mount", "mnt")
    let content = noise(32 << 20)
    try Kernel.makeFile(desk.path("mnt/file"), content)
    let agent = try desk.agentProcess()
    let ended = try desk.shell("unset COFFER_VAULT; coffer unmount mnt")
    #expect(ended.code == 0 && ended.errors == "coffer: unmounted\n", "\(ended.errors)")
    kill(agent, SIGKILL)
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes == content)
  }

  /// Its agent has those that programs have open as long as it lives, unless it gives them back by itself.
  @Test(.enabled(if: isRoot, "only root may tear a mount off"))
  func `a mount that was torn off is ended with what was written, and nothing of it stays open`() throws {
    try desk.done("mount", "mnt")
    try shell("echo text > mnt/first && cat mnt/first")
    let agent = try desk.agentProcess()
    func openPaths(ofIndex isOfIndex: Bool = false) throws -> [String] {
      let folder = "/proc/\(agent)/fd"
      return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { name in
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
        return path?.contains("/index.sqlite") == isOfIndex ? path : nil
      }
    }
    // As many as it has for a mount.
    let before = try openPaths().count
    let content = noise(8 << 20)
    do {
      let files = try (0..<20).map { number in
        let path = desk.path("mnt/file-\(number)")
        try Kernel.makeFile(path, number == 0 ? content : noise(100_000, seed: UInt64(number)))
        let file = try Handle(path, O_RDWR)
        try file.sync()
        _ = try file.read(1, at: 0)
        return file
      }
      #expect(try openPaths().count >= before + files.count)
      #expect(umount2(desk.path("mnt"), CInt(MNT_FORCE)) != 0 && errno == EBUSY)
    }
    let ended = try desk.served("unmount", "mnt")
    // Its agent may have done with it before it is asked.
    #expect(
      ended.errors == "coffer: unmounted\n" || ended.errors.hasPrefix("coffer: unmounted. Nobody served it any more:"),
      "\(ended.errors)")
    #expect(try !isMounted)
    let after = try openPaths()
    #expect(after.count <= before, "\(after.sorted())")
    // Two of each connection: one that stores, and sixteen at most that read and stay.
    #expect(try openPaths(ofIndex: true).count <= 34)
    kill(agent, SIGKILL)
    try desk.unlock()
    #expect(try desk.served("cat", "/file-0").bytes == content)
  }

  @Test(.enabled(if: isRoot, "only root may mount what it likes"))
  func `two names that are written alike are two places`() throws {
    try shell("mkdir caf\u{e9} cafe\u{301}")
    try desk.done("mount", "caf\u{e9}")
    try shell("mount -t tmpfs none cafe\u{301}")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount cafe\u{301}"]) }
    #expect(try !desk.served("agent", "status").output.contains("taken out of the tree"))
    try desk.unserved(64, "what is mounted there is no vault", "unmount", "cafe\u{301}")
    #expect(try desk.served("unmount", "caf\u{e9}").errors == "coffer: unmounted\n")
    #expect(try shell("mount | grep -c 'on .*/cafe\u{301} type tmpfs'") == "1\n")
  }

  @Test(.enabled(if: isRoot, "only root may bind a folder to another place"))
  func `a mount that is bound to its own place ends there at once`() throws {
    try desk.done("mount", "mnt")
    try shell("mount --bind mnt mnt")
    #expect(try desk.served("unmount", "mnt").errors == "coffer: unmounted\n")
    #expect(try !isMounted)
  }

  @Test(arguments: [["unmount", "--force", "moved/below"], ["agent", "stop"]])
  func `a mount that was moved with the folder above it ends where it is`(_ command: [String]) throws {
    try shell("mkdir above above/below")
    try desk.done("mount", "above/below")
    try shell("mv above moved")
    let file = try Handle(desk.path("moved/below/file"), O_CREAT | O_RDWR)
    try file.writeAll(noise(1000))
    #expect(try desk.served("agent", "status").output.contains("mounted    \(desk.path("moved/below"))\n"))
    try desk.unserved(75, "programs use files in it", "unmount", "moved/below")
    let ended = try desk.run("coffer", command)
    #expect(ended.code == 0 && !ended.errors.contains("not found"), "\(ended.errors)")
    #expect(throws: (any Error).self) { try file.read(20, at: 0) }
    #expect(try shell("grep -c \(desk.path("moved/below")) /proc/self/mountinfo || :") == "0\n")
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes == noise(1000))
  }

  @Test(.enabled(if: isRoot, "only root may bind a folder to another place"))
  func `where a mount is bound to it ends there alone`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir bound && mount --bind mnt bound && echo text > bound/file")
    let ended = try desk.served("unmount", "bound").errors
    #expect(ended.contains("stays mounted on \(desk.path("mnt"))\n"), "\(ended)")
    #expect(try shell("cat mnt/file && ls bound") == "text\n")
  }

  @Test(.enabled(if: isRoot, "only root may bind a folder to another place"), arguments: [false, true])
  func `a mount that is bound as a whole ends everywhere, and the places are told`(_ isUsed: Bool) throws {
    try desk.done("mount", "mnt")
    try shell("mkdir bound && mount --bind mnt bound && echo text > bound/file")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount bound"]) }
    let file = isUsed ? try Handle(desk.path("mnt/file"), O_RDONLY) : nil
    let ended = try desk.onTerminal("unmount", "--force", "mnt", typed: "")
    #expect(ended.output.contains(": \(desk.path("bound"));"), "\(ended.output)")
    #expect(!ended.output.contains("name space"), "\(ended.output)")
    if let file { #expect(throws: (any Error).self) { try file.read(3, at: 0) } }
    try fails("cat bound/file", "cat: bound/file")
  }

  @Test(.enabled(if: isRoot, "only root may hide a mount behind another one"))
  func `a mount that is hidden is ended by force, which tells where it is left`() throws {
    try desk.done("mount", "mnt")
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_RDWR)
    try file.writeAll(noise(1000))
    try shell("mount -t tmpfs none mnt")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount mnt"]) }
    let ended = try desk.onTerminal("unmount", "--force", "mnt", typed: "")
    #expect(ended.output.contains(": \(desk.path("mnt"));"), "\(ended.output)")
    #expect(throws: (any Error).self) { try file.read(20, at: 0) }
    try shell("umount mnt")
    #expect(try desk.served("agent", "status").output.contains("ended, but not out of the tree"))
    try desk.served("agent", "stop")
    #expect(try !isMounted)
  }

  /// Some of which have the system ask that agent.
  @Test(arguments: ["mnt", "mnt/", "mnt/./", "mnt/folder/.."])
  func `an unmount does not wait for an agent that answers nobody`(_ name: String) throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/folder && echo text > mnt/file && sync mnt/file")
    let agent = try desk.agentProcess()
    kill(agent, SIGSTOP)
    defer { kill(agent, SIGCONT) }
    let refused = try desk.shell("unset COFFER_VAULT; coffer unmount \(name)")
    #expect(refused.code == 75 && refused.errors.contains("does not answer"), "\(refused.errors)")
    #expect(try isMounted)
    let ended = try desk.shell("unset COFFER_VAULT; coffer unmount --force mnt/")
    #expect(ended.code == 0 && ended.errors.contains("does not answer"), "\(ended.errors)")
    #expect(try !isMounted)
  }

  /// To go up from there would ask the agent, and so would looking for a mount that only it may know of.
  @Test func `nor does one from a folder in the mount, or where no mount is seen`() throws {
    try desk.done("mount", "mnt")
    _ = try desk.shell("mkdir mnt/folder mnt/$'fo\\xff' other")
    let agent = try desk.agentProcess()
    defer { kill(agent, SIGCONT) }
    for (folder, name) in [
      ("folder", "."), ("folder", ".."), ("folder", "../../mnt"), ("folder", "../absent"), ("folder", "../../other"),
      ("folder", "--force ../../other"), ("fo\\xff", "."), ("fo\\xff", ".."), ("fo\\xff", "--force ../../other"),
    ] {
      let refused = try unmount(name, from: "mnt/$'\(folder)'", stopping: agent)
      #expect(refused.code == 75 && refused.errors.contains("does not answer"), "\(folder) \(name): \(refused)")
    }
    #expect(try isMounted)
    let ended = try unmount("--force ..", from: "mnt/$'fo\\xff'", stopping: agent)
    #expect(ended.code == 0, "\(ended)")
    #expect(try !isMounted)
  }

  /// The system does not say what folder that is, and to find out would ask the agent.
  @Test func `nor does one from a folder in a mount that was taken out of the tree`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/folder other")
    let agent = try desk.agentProcess()
    defer { kill(agent, SIGCONT) }
    let ended = try desk.shell(
      """
      coffer=$(command -v coffer); other=$PWD/other; cd mnt/folder; umount -l ../../mnt 2>/dev/null || fusermount3 -u -z ../../mnt
      kill -STOP \(agent); for name in . .. ../../other $other; do timeout 60 $coffer unmount $name; echo $?; done
      """)
    #expect(ended.output == "75\n75\n75\n75\n", "\(ended)")
  }

  /// The folder is entered while the agent still answers.
  private func unmount(_ arguments: String, from folder: String, stopping agent: pid_t) throws -> RunningProgram.Outcome
  {
    kill(agent, SIGCONT)
    return try desk.shell(
      "coffer=$(command -v coffer); cd \(folder) && kill -STOP \(agent) && timeout 60 $coffer unmount \(arguments)")
  }

  @Test func `a forced unmount ends what somebody has taken out of the tree`() throws {
    try desk.done("mount", "mnt")
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    try file.writeAll(noise(1000))
    try shell("umount -l mnt 2>/dev/null || fusermount3 -u -z mnt")
    #expect(try desk.served("unmount", "--force", "mnt").errors == "coffer: unmounted\n")
    #expect(throws: (any Error).self) { try file.write("x") }
    #expect(try desk.served("cat", "/file").bytes == noise(1000))
    try desk.unserved(66, "no vault is mounted", "unmount", "--force", "mnt")
  }
}
