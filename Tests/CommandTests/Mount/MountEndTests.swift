import CofferSystem
import CofferTestSupport
import Foundation
import Glibc
import Testing

/// How a mount ends, and what those hear of it who used it.
@Suite(.enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"))
final class MountEndTests: MountDesk {
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
    // Not by the command itself, which stands where its shell does.
    let inside = try desk.shell("cd mnt/folder && coffer unmount \(desk.path("mnt")); echo $$; :")
    #expect(inside.errors.contains("(process \(inside.output.trimmingCharacters(in: .newlines)));"), "\(inside.errors)")
    try desk.served("mount", "--folder", "/folder", "mnt/folder")
    try desk.unserved(75, "something else is mounted", "unmount", "mnt")
    try desk.served("umount", "mnt/folder")
    try desk.served("umount", "mnt")
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

  /// What is written to the files of a folder that is gone goes with them.
  @Test(arguments: [100, 100_000]) func `of a vault that was removed nothing is said to be stored`(size: Int) throws {
    let mount = try MountDesk()
    let desk = mount.desk
    try desk.unlock()
    try desk.served("mount", "mnt")
    // Nobody finds it any more.
    let agent = try desk.agentProcess()
    defer { kill(agent, SIGKILL) }
    try Kernel.makeFile(desk.path("mnt/before"), noise(100))
    try Handle(desk.path("mnt/before"), O_RDWR).sync()
    try desk.remove("vault")
    #expect(throws: CallError.self) {
      try Kernel.makeFile(desk.path("mnt/behind"), noise(size))
      try Handle(desk.path("mnt/behind"), O_RDWR).sync()
    }
    let unmounted = try desk.run("coffer", ["unmount", "mnt"])
    #expect(unmounted.code == 75 && unmounted.errors.contains("is not stored"), "\(unmounted)")
    // The folder says no more whose agent it is, but that there is one.
    for command in ["stop", "status"] {
      #expect(try desk.run("coffer", ["agent", command]).output.contains("kill \(agent)"))
    }
    #expect(try desk.run("coffer", ["lock"]).errors.contains("kill \(agent)"))
    kill(agent, SIGTERM)
    while kill(agent, 0) == 0 { sched_yield() }
    #expect(try !desk.run("coffer", ["agent", "stop"]).output.contains("kill"))
  }

  /// Who waits for an answer of its own process cannot be killed, and keeps the mount's connection.
  @Test(.enabled(if: geteuid() == 0, "only root"), arguments: ["unmount", "unmount --force", "connections"])
  func `an agent that is killed while it uses its own mount is named, and gone with it`(_ way: String) throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/tree && cd mnt/tree && for number in $(seq 500); do echo $number > $number; done && sync .")
    var hasStayed = false
    for round in 0..<20 where !hasStayed {
      if round > 0 { try desk.done("mount", "mnt") }
      let agent = try desk.agentProcess()
      // The agent has what the command writes to.
      let put = try desk.start("/bin/sh", ["-c", "exec \"$0\" put -r mnt/tree /copy\(round) 2> refusal", program])
      // As near as can be to when one of its threads waits for another: then it stays about every second time.
      while !waitsForItself(agent), !put.hasEnded {}
      kill(agent, SIGKILL)
      put.waitUnread()
      hasStayed = String(decoding: try desk.read("refusal"), as: UTF8.self).contains("(process \(agent)) was killed")
      if hasStayed {
        for command in [["ls"], ["agent", "stop", "--force"], ["mount", "mnt"]] {
          let refused = try desk.run("coffer", command)
          #expect(refused.code == 75 && refused.errors.contains("coffer unmount \(desk.path("mnt"))"), "\(refused)")
        }
        if way == "connections" { try endByConnection() }
      }
      let ended = try desk.run("coffer", way == "connections" ? ["unmount", "mnt"] : words(way) + ["mnt"])
      #expect(ended.code == 0, "\(ended.errors)")
      #expect(try !isMounted)
      while kill(agent, 0) == 0 { sched_yield() }
      try desk.done("ls", "/tree")
    }
  }

  private var program: String { RunningProgram.folder.appending(path: "coffer").path }

  private func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

  /// As an ordinary user ends it, who may not take it out of the tree by the system's own call.
  private func endByConnection() throws {
    let outcome = try desk.run(
      "/usr/bin/unshare",
      [
        "-m", "/bin/sh", "-c",
        """
        mount -t fusectl none /sys/fs/fuse/connections &&
        exec setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin "$0" unmount mnt
        """, program,
      ])
    #expect(!outcome.errors.contains("root's to end"), "\(outcome)")
  }

  private func waitsForItself(_ agent: Int32) -> Bool {
    let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(agent)/task")) ?? []
    return tasks.contains { task in
      (try? KernelFile.text(of: "/proc/\(agent)/task/\(task)/wchan")) == "request_wait_answer"
    }
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

  @Test(.enabled(if: MountedDisk.isPossible, "only root may bind a folder to another place"))
  func `an unmount names the places that the mount is bound to, where nothing passes any more`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/folder bound && echo text > mnt/folder/file && mount --bind mnt/folder bound")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount bound"]) }
    let ended = try desk.onTerminal("unmount", "mnt", typed: "")
    #expect(ended.output.contains("bound to another place too"), "\(ended.output)")
    #expect(ended.output.contains(": \(desk.path("bound"));"), "\(ended.output)")
    try fails("cat bound/file", "cat: bound/file")
    try shell("umount bound")
    // A place may be a name in a vault: not to what may be kept as a log.
    try desk.done("mount", "mnt")
    try shell("mount --bind mnt/folder bound")
    let logged = try desk.served("unmount", "mnt").errors
    #expect(logged.contains("bound to another place too") && !logged.contains(desk.path("bound")), "\(logged)")
    #expect(try desk.done("cat", "/folder/file").output == "text\n")
  }

  @Test(.enabled(if: MountedDisk.isPossible, "only root may mount something else in there"))
  func `a mount with another one below is ended by force, and tells of who used it`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/below && mount -t tmpfs none mnt/below")
    try desk.unserved(75, "something else is mounted on a folder in it", "unmount", "mnt")
    // Nobody but the other mount.
    let quiet = try desk.served("unmount", "--force", "mnt").errors
    #expect(!quiet.contains("programs used files"), "\(quiet)")
    #expect(quiet.contains("mounted below it is out of the tree with it; "), "\(quiet)")
    try desk.done("mount", "mnt")
    try shell("mount -t tmpfs none mnt/below")
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    try file.writeAll(noise(100_000))
    try expectTold(by: desk.served("unmount", "--force", "mnt"))
    #expect(try !isMounted)
    #expect(throws: (any Error).self) { try file.write("x") }
    #expect(try desk.done("cat", "/file").bytes == noise(100_000))
  }

  @Test func `whoever ends a mount that was taken out of the tree leaves another vault's in its place alone`() throws {
    defer {
      for arguments in [["unmount", "--force", "mnt"], ["agent", "stop"]] {
        _ = try? desk.run("coffer", arguments + ["--vault", "other"])
      }
    }
    try desk.done("mount", "mnt")
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    try shell("umount -l mnt 2>/dev/null || fusermount3 -u -z mnt")
    try desk.done("init", "--vault", "other")
    try desk.done("mount", "--vault", "other", "mnt")
    let theirs = try Handle(desk.path("mnt/theirs"), O_CREAT | O_WRONLY)
    #expect(try desk.served("agent", "status").output.contains("taken out of the tree, but programs use it still\n"))
    // What ends there is what is seen, whoever's it is, and not where it is used.
    try desk.unserved(75, "programs use files in it", "unmount", "mnt")
    try file.writeAll(noise(100_000))
    let ended = try desk.served("agent", "stop")
    #expect(!ended.errors.contains("programs used files"), "\(ended.errors)")
    #expect(throws: (any Error).self) { try file.write("x") }
    #expect(try isMounted)
    try theirs.writeAll(noise(50_000))
    #expect(try desk.read("mnt/theirs") == noise(50_000))
    #expect(
      try desk.served("agent", "status", "--vault", "other").output.contains("\nmounted    \(desk.path("mnt"))\n"))
    #expect(try desk.done("cat", "/file").bytes == noise(100_000))
  }

  @Test func `an interrupt ends the mount that waits for it, and not one that was made in its place`() throws {
    try desk.unlock()
    let mount = try desk.start("coffer", ["mount", "--foreground", "mnt"])
    #expect(mount.line().contains("mounted on"))
    let file = try Handle(desk.path("mnt/file"), O_CREAT | O_WRONLY)
    try shell("umount -l mnt 2>/dev/null || fusermount3 -u -z mnt")
    // Nobody can take a file there for two.
    #expect(try desk.served("mount", "mnt").errors == "")
    mount.signal(SIGINT)
    let ended = mount.wait()
    #expect(ended.code == 130, "\(ended.errors)")
    #expect(throws: (any Error).self) { try file.write("x") }
    try shell("echo text > mnt/file")
    #expect(try desk.served("cat", "/file").output == "text\n")
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
    #expect(ended.errors.contains("waiting until"), "\(ended.errors)")
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
    // As for who finds no agent.
    let taken = try desk.shell("unset COFFER_VAULT; XDG_RUNTIME_DIR=$HOME coffer unmount --force mnt")
    #expect(taken.code == 0 && taken.errors.contains("go on to do so, until they end"), "\(taken.errors)")
    #expect(taken.errors.contains("it still has to store what programs wrote last"), "\(taken.errors)")
    #expect(try !isMounted)
    try file.writeAll(noise(100_000))
    try desk.served("agent", "stop")
    #expect(throws: (any Error).self) { try file.write("x") }
    #expect(try desk.done("cat", "/file").bytes == noise(100_000))
  }

  /// Where it is locked already, only what programs stored to mappings of what stays readable is left to store.
  @Test func `a hang-up of a locked agent stores what programs stored to mappings`() throws {
    try desk.unlock()
    try desk.done("mount", "mnt")
    try Kernel.makeFile(desk.path("mnt/file"), noise(100_000))
    try desk.served("protect", "/file", "none")
    // Its descriptor would have it brought back with each program that is started, which closes its own.
    let map = try Mapping(of: Kernel.open(desk.path("mnt/file"), O_RDWR), count: 100_000)
    try desk.served("lock", "--now")
    map[50_000..<50_006] = Array("mapped".utf8)
    let before = try committed()
    let agent = try desk.agentProcess()
    kill(agent, SIGHUP)
    // Nothing else is left to store. Whoever asks for content would have it brought back.
    let isStored = try (0..<200).contains { _ in try committed() != before }
    #expect(isStored)
    _ = try committed()
    kill(agent, SIGKILL)
    withExtendedLifetime(map) {}
    try desk.unlock()
    #expect(try desk.served("cat", "/file").bytes.dropFirst(50_000).starts(with: Array("mapped".utf8)))
  }

  /// When the index and its journal were changed last, once they are not being changed.
  private func committed() throws -> String {
    var last = ""
    while true {
      try desk.served("agent", "status")
      let found = try shell(
        "find vault -maxdepth 1 -type f \\( -name 'index*' -o -name 'journal*' \\) -printf '%p %s %T@\\n' | sort")
      if found == last { return found }
      last = found
    }
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

  @Test(arguments: ["stop", "kill"])
  func `in the foreground it says that its agent is gone, and what to do then`(_ how: String) throws {
    try desk.unlock()
    let mount = try desk.start("coffer", ["mount", "--foreground", "mnt"])
    #expect(mount.line().contains("mounted on"))
    if how == "stop" {
      try desk.served("agent", "stop")
      let ended = mount.wait()
      #expect(
        ended.code == 130 && ended.errors.contains("coffer: unmounted, because the agent ends"), "\(ended.errors)")
    } else {
      kill(try desk.agentProcess(), SIGKILL)
      let ended = mount.wait()
      #expect(ended.code == 75)
      #expect(
        ended.errors.contains("clear its mount away with: coffer unmount \(desk.path("mnt"))"), "\(ended.errors)")
    }
  }
}
