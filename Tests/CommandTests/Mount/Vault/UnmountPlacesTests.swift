import CofferTestSupport
import Foundation
import Glibc
import Testing

/// Who unmounts sees the mount elsewhere than its agent does: bound to another place, or in another name space of mounts.
@Suite(
  .enabled(if: Fuse.isThere, "/dev/fuse is not there, or not ours to open"),
  .enabled(
    if: geteuid() == 0, "only root may bind a folder to another place, or make a name space of mounts for itself"))
final class UnmountPlacesTests: MountDesk {
  /// What a script prints, to both, that runs in a name space of mounts of its own, with the agent's number in `$AGENT`.
  private func inside(_ script: String) throws -> String {
    try desk.write("inside", script)
    let ran = try desk.shell("AGENT=\(try desk.agentProcess()) unshare --mount --propagation private sh inside 2>&1")
    return ran.output + ran.errors
  }

  private func seen(_ place: String) -> String { "grep -c ' \(desk.path(place)) ' /proc/self/mountinfo" }

  @Test(arguments: ["", "--force"])
  func `an end takes the mount away where it was asked for, too`(_ option: String) throws {
    try desk.done("mount", "mnt")
    try shell("echo text > mnt/file")
    let told = try inside("coffer unmount \(option) mnt; echo $?; \(seen("mnt")); coffer unmount mnt; echo $?")
    #expect(told.contains("can use files in it no more\ncoffer: unmounted\n0\n0\n"), "\(told)")
    #expect(told.hasSuffix("no vault is mounted there\n66\n"), "\(told)")
    #expect(try !isMounted)
    try desk.unlock()
    #expect(try desk.served("cat", "/file").output == "text\n")
  }

  @Test func `an end takes away what the agent does not see, and by force also from programs`() throws {
    let takeOut = "nsenter --target $AGENT --mount umount \(desk.path("mnt"))"
    try desk.done("mount", "mnt")
    var told = try inside("\(takeOut); coffer unmount mnt; echo $?; \(seen("mnt"))")
    #expect(told.contains("coffer: unmounted. What programs wrote last is stored by its agent"), "\(told)")
    #expect(told.hasSuffix("\n0\n0\n"), "\(told)")

    try desk.done("mount", "mnt")
    told = try inside(
      """
      exec 7> mnt/file; echo text >&7
      \(takeOut)
      coffer unmount mnt; echo $?
      coffer unmount --force mnt; echo $?; \(seen("mnt"))
      sh -c 'echo more >&7' && echo passed
      """)
    #expect(told.contains("programs use files in it"), "\(told)")
    #expect(told.contains("75\n") && told.contains("coffer: unmounted\n0\n0\n"), "\(told)")
    #expect(!told.contains("passed"), "\(told)")
    try desk.unlock()
    #expect(try desk.served("cat", "/file").output == "text\n")
  }

  @Test func `who does not see the mount ends that of the vault that is named`() throws {
    try desk.done("mount", "mnt")
    let told = try inside("umount mnt; coffer unmount mnt; echo $?; coffer unmount mnt; echo $?")
    #expect(told.contains("coffer: unmounted\n0\n"), "\(told)")
    #expect(told.hasSuffix("no vault is mounted there\n66\n"), "\(told)")
    #expect(try !isMounted)
  }

  @Test func `the last place that a mount is bound to takes it away, and nobody says that all is stored`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/sub bound && mount --bind mnt/sub bound && umount mnt && echo text > bound/file")
    let ended = try desk.served("unmount", "--json", "bound")
    #expect(ended.output.contains(#""stored" : false"#) && !ended.errors.contains("stays mounted"), "\(ended)")
    try desk.served("agent", "stop")
    try desk.unlock()
    #expect(try desk.served("cat", "/sub/file").output == "text\n")
  }

  @Test func `by force a place that a mount is bound to goes alone, and it is said that programs go on`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir bound && mount --bind mnt bound && mkdir bound/below && mount -t tmpfs none bound/below")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount -l bound/below; umount -l bound; umount -l mnt/below"]) }
    let file = try Handle(desk.path("bound/file"), O_CREAT | O_RDWR)
    let refused = try desk.run("coffer", ["unmount", "bound"])
    #expect(refused.code == 75, "\(refused)")
    let ended = try desk.served("unmount", "--force", "--json", "bound")
    #expect(ended.output.contains(#""stored" : false"#), "\(ended.output)")
    #expect(ended.errors.contains("go on to do so, until they end"), "\(ended.errors)")
    #expect(ended.errors.contains("what was mounted below it is out of the tree with it"), "\(ended.errors)")
    #expect(ended.errors.contains("stays mounted on \(desk.path("mnt"))\n"), "\(ended.errors)")
    try file.writeAll(noise(1000))
    #expect(try isMounted)
  }

  @Test func `a place that a mount is bound to twice is free at once`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir bound && mount --bind mnt bound && mount --bind mnt bound")
    try desk.served("unmount", "bound")
    #expect(try shell(seen("bound") + " || true") == "0\n")
    #expect(try isMounted)
  }

  @Test func `an unmount takes nothing of others that was moved onto a mount`() throws {
    try desk.done("mount", "mnt")
    let told = try inside(
      """
      unset COFFER_VAULT
      mkdir other; mount -t tmpfs none other; mount --bind mnt second; mount --move other second
      coffer unmount second; echo $?; coffer unmount --force second; echo $?
      \(seen("second"))
      """)
    #expect(told.components(separatedBy: "what is mounted there is no vault\n64\n").count == 3, "\(told)")
    #expect(told.hasSuffix("64\n2\n"), "\(told)")
  }

  @Test func `an unmount takes nothing of others that was moved in front of a hidden mount`() throws {
    try shell("mkdir -p deep/mnt other && mount -t tmpfs none other && echo data > other/precious")
    defer { _ = try? desk.run("/bin/sh", ["-c", "coffer unmount --force deep/mnt; umount -l other"]) }
    try desk.done("mount", "deep/mnt")
    let told = try inside(
      """
      unset COFFER_VAULT
      mount -t tmpfs none deep && mkdir deep/mnt && mount --move other deep/mnt
      coffer unmount deep/mnt; echo $?; coffer unmount --force deep/mnt; echo $?; cat deep/mnt/precious
      """)
    #expect(told.components(separatedBy: "what is mounted there is no vault\n64\n").count == 3, "\(told)")
    #expect(told.hasSuffix("64\ndata\n"), "\(told)")
    try desk.served("unmount", "deep/mnt")
  }

  @Test func `an unmount takes nothing of others beside what is mounted on the root itself`() throws {
    try desk.done("mount", "mnt")
    let told = try inside(
      """
      unset COFFER_VAULT
      mount --rbind / / && mount -t tmpfs none mnt && echo data > mnt/precious
      coffer unmount --force mnt; echo $?; cat mnt/precious; umount mnt; coffer unmount mnt; echo $?; \(seen("mnt"))
      """)
    #expect(told.contains("what is mounted there is no vault\n64\ndata\n"), "\(told)")
    #expect(told.contains("coffer: unmounted\n0\n"), "\(told)")
    #expect(try !isMounted)
  }

  /// The kernel gives a list of more than a page in portions.
  private static let crowd =
    "for number in $(seq 100); do mkdir -p others/$number && mount -t tmpfs none others/$number; done"

  @Test func `what is mounted behind many others is seen`() throws {
    try desk.done("mount", "mnt")
    let told = try inside(
      """
      unset COFFER_VAULT
      \(Self.crowd)
      mount --bind mnt second && coffer unmount second; echo $?
      mount -t tmpfs none mnt && echo data > mnt/precious
      coffer unmount --force mnt; echo $?; cat mnt/precious; umount mnt; coffer unmount mnt; echo $?; \(seen("mnt"))
      """)
    #expect(told.contains("stays mounted on \(desk.path("mnt"))\ncoffer: unmounted\n0\n"), "\(told)")
    #expect(told.contains("what is mounted there is no vault\n64\ndata\n"), "\(told)")
    #expect(told.hasSuffix("coffer: unmounted\n0\n0\n"), "\(told)")
  }

  @Test func `an agent sees its mount behind many others`() throws {
    try desk.write(
      "inside",
      """
      \(Self.crowd)
      coffer mount --passcode-file passcode mnt && echo text > mnt/file
      coffer agent status; coffer mount second && coffer unmount second; echo $?
      exec 7< mnt/file; coffer unmount mnt; echo $?; exec 7<&-
      coffer unmount mnt; echo $?; \(seen("mnt")); coffer cat /file; coffer agent stop
      """)
    let told = try desk.shell("unshare --mount --propagation private sh inside 2>&1").output
    #expect(told.contains("  \(desk.path("mnt"))"), "\(told)")
    #expect(!told.contains("taken out of the tree"), "\(told)")
    #expect(told.contains("programs use files in it") && told.contains("75\n"), "\(told)")
    #expect(told.contains("coffer: unmounted\n0\n0\ntext\n"), "\(told)")
  }

  @Test(arguments: ["", "--force"])
  func `a place that a mount is bound to goes alone where its own is hidden`(_ option: String) throws {
    try shell("mkdir -p deep/mnt bound")
    try desk.done("mount", "deep/mnt")
    var file: Handle? = try Handle(desk.path("deep/mnt/file"), O_CREAT | O_RDWR)
    try shell("mount --bind deep/mnt bound && mount -t tmpfs none deep")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount deep; umount -l bound; coffer unmount --force deep/mnt"]) }
    let ended = try desk.shell("coffer unmount \(option) bound")
    #expect(ended.code == 0 && ended.errors.contains("stays mounted on \(desk.path("deep/mnt"))\n"), "\(ended)")
    try file?.writeAll(noise(1000))
    file = nil
    try shell("umount deep && cat deep/mnt/file > /dev/null")
    try desk.served("unmount", "deep/mnt")
  }

  @Test(.enabled(if: Fuse.isThereInNameSpace, "a user's name space is not there, or /dev/fuse is not ours in it"))
  func `what the system keeps in another user's name space of mounts is said to stay there`() throws {
    try desk.done("mount", "mnt")
    try desk.write("inside", "coffer unmount mnt; echo $?; coffer unmount --force mnt; echo $?")
    let ran = try desk.shell("unshare --user --map-root-user --mount sh inside 2>&1")
    #expect(ran.output.contains("can use files in it no more: the system lets nobody take it out"), "\(ran.output)")
    #expect(ran.output.hasSuffix("\n77\n") && !ran.output.contains("use --force"), "\(ran.output)")
    #expect(try !isMounted)
  }

  @Test func `a mount that is hidden with the folder it lies in is ended by force alone`() throws {
    try shell("mkdir -p deep/mnt")
    try desk.done("mount", "deep/mnt")
    let file = try Handle(desk.path("deep/mnt/file"), O_CREAT | O_RDWR)
    try file.writeAll(noise(1000))
    try shell("mount -t tmpfs none deep && mkdir deep/mnt")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount deep; umount deep/mnt"]) }
    #expect(try desk.served("agent", "status").output.contains("hidden by what was mounted since"))
    try desk.unserved(66, "no vault is mounted there", "unmount", "deep/mnt")
    #expect(try desk.served("unmount", "--force", "deep/mnt").errors.contains("or something hides it"))
    #expect(throws: (any Error).self) { try file.read(20, at: 0) }
    #expect(try desk.served("cat", "/file").bytes == noise(1000))
    // What hides it is there still, and free for another one.
    try desk.served("mount", "deep/mnt")
    try desk.served("unmount", "deep/mnt")
    #expect(try shell(seen("deep")) == "1\n")
  }

  @Test func `who asks for an end without force keeps what only they have mounted below`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/sub")
    let told = try inside(
      """
      mount -t tmpfs none mnt/sub && echo data > mnt/sub/precious
      coffer unmount mnt; echo $?; cat mnt/sub/precious; coffer unmount --force --json mnt; echo $?; \(seen("mnt"))
      """)
    #expect(told.contains("something else is mounted on a folder in it"), "\(told)")
    #expect(told.contains("75\ndata\n"), "\(told)")
    #expect(told.contains("what was mounted below it is out of the tree with it"), "\(told)")
    #expect(told.hasSuffix("\n0\n0\n"), "\(told)")
    #expect(try !isMounted)
  }

  @Test func `a mount whose agent was killed is cleared away beside an agent that answers nobody`() throws {
    try desk.done("mount", "mnt")
    kill(try desk.agentProcess(), SIGKILL)
    while try !desk.run("/bin/sh", ["-c", "ls mnt"]).errors.contains("not connected") { sched_yield() }
    let own = desk.environment["COFFER_VAULT"]
    desk.environment["COFFER_VAULT"] = desk.path("another")
    try desk.done("init", "--no-recovery-key")
    try desk.unlock()
    let other = try desk.agentProcess()
    kill(other, SIGSTOP)
    defer {
      kill(other, SIGCONT)
      _ = try? desk.run("coffer", ["agent", "stop"])
      desk.environment["COFFER_VAULT"] = own
    }
    let ended = try desk.run("coffer", ["unmount", "mnt"])
    #expect(ended.code == 0 && ended.errors.contains("An agent does not answer: where it was that one's"), "\(ended)")
    #expect(try !isMounted)
  }

  @Test func `what is mounted below a mount whose agent was killed goes with it by force alone, and is told`() throws {
    try desk.done("mount", "mnt")
    try shell("mkdir mnt/below && mount -t tmpfs none mnt/below")
    defer { _ = try? desk.run("/bin/sh", ["-c", "umount -l mnt/below; umount -l mnt"]) }
    kill(try desk.agentProcess(), SIGKILL)
    // At first the connection counts as one that was aborted.
    while try !desk.run("/bin/sh", ["-c", "ls mnt"]).errors.contains("not connected") { sched_yield() }
    let refused = try desk.run("coffer", ["unmount", "mnt"])
    #expect(refused.code == 75, "\(refused)")
    #expect(try isMounted)
    let ended = try desk.run("coffer", ["unmount", "--force", "--json", "mnt"])
    #expect(ended.code == 0 && ended.output.contains(#""stored" : false"#), "\(ended)")
    #expect(ended.errors.contains("what was mounted below it is out of the tree with it"), "\(ended)")
    #expect(try !isMounted)
  }

  @Test func `a folder that a descriptor names may be written with a slash`() throws {
    try shell("mkdir own")
    try desk.unlock()
    let ran = try desk.shell("coffer mount /dev/fd/5/ 5< own && coffer unmount own")
    #expect(ran.code == 0, "\(ran)")
  }

  @Test func `an agent ends the mount that was meant, and none that has come in its place`() throws {
    try desk.done("mount", "mnt")
    let refused = try desk.run("coffer", ["unmount", "--mount", "1", "mnt"])
    #expect(refused.code == 66 && refused.errors.contains("no vault is mounted"), "\(refused)")
    #expect(try isMounted)
  }
}
