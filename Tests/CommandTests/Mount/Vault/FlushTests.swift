import Glibc
import Testing

/// What is on the disk when a call or a command has returned, and not just in the agent's memory: the agent is killed then.
@Suite(.enabled(if: Ground.mountIsThere, Ground.missing)) struct FlushTests {
  let ground: Ground
  let plot: Plot

  init() throws {
    ground = try Ground(.mount)
    plot = try ground.plot()
    try plot.furnish()
    // What comes before is stored, and nothing of it is left for the sync that is tried.
    try ground.unmount()
    try ground.mount()
  }

  private func mountAfterKill() throws {
    kill(try ground.desk.agentProcess(), SIGKILL)
    _ = try ground.desk.run("coffer", ["unmount", "--force", ground.path])
    try ground.unlock()
    try ground.mount()
  }

  /// What is done to names or a folder alone, so that no file's sync keeps it as well.
  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The folder that is synced.
    var folder = ""
    let make: @Sendable (Plot) throws -> Void
    let isThere: @Sendable (Plot) throws -> Bool
  }

  static let changes = [
    Change(testDescription: "mkdir") {
      try Kernel.mkdir($0("new"))
    } isThere: {
      try Kernel.stat($0("new")).kind == S_IFDIR
    },
    Change(testDescription: "rmdir") {
      try Kernel.rmdir($0("bare"))
    } isThere: {
      try !Kernel.exists($0("bare"))
    },
    Change(testDescription: "rename") {
      try Kernel.rename($0("file"), $0("renamed"))
    } isThere: {
      try !Kernel.exists($0("file")) && Kernel.text($0("renamed")) == "content\n"
    },
    Change(testDescription: "rename to another folder", folder: "bare") {
      try Kernel.rename($0("folder/inside"), $0("bare/moved"))
    } isThere: {
      try Kernel.names($0("folder")).isEmpty && Kernel.text($0("bare/moved")) == "inside\n"
    },
    Change(testDescription: "link", folder: "folder") {
      try Kernel.link($0("file"), $0("folder/third"))
    } isThere: {
      try Kernel.stat($0("folder/third")).links == 3
    },
    Change(testDescription: "unlink") {
      try Kernel.unlink($0("again"))
    } isThere: {
      try !Kernel.exists($0("again")) && Kernel.stat($0("file")).links == 1
    },
    Change(testDescription: "symlink") {
      try Kernel.symlink("file", at: $0("second"))
    } isThere: {
      try Kernel.readLink($0("second")) == "file"
    },
    Change(testDescription: "mkfifo") {
      try Kernel.makeNode($0("second"), S_IFIFO)
    } isThere: {
      try Kernel.stat($0("second")).kind == S_IFIFO
    },
    Change(testDescription: "chmod of the folder", folder: "folder") {
      try Kernel.chmod($0("folder"), 0o1711)
    } isThere: {
      try Kernel.stat($0("folder")).permissions == 0o1711
    },
    Change(testDescription: "setxattr of the folder", folder: "folder") {
      try Kernel.setAttribute($0("folder"), "user.mark", "kept")
    } isThere: {
      try Kernel.attribute($0("folder"), "user.mark") == Array("kept".utf8)
    },
  ]

  @Test(arguments: changes) func `a folder's sync alone keeps what was done to names`(change: Change) throws {
    try change.make(plot)
    try Handle(plot(change.folder), O_RDONLY | O_DIRECTORY).sync()
    try mountAfterKill()
    #expect(try change.isThere(plot))
    try ground.desk.served("verify", "--deep")
  }

  /// - Parameter isForced: a program still has the file open, and the mount is taken from it.
  @Test(arguments: [false, true]) func `an unmount stores what nobody synced`(isForced: Bool) throws {
    let content = noise(300_000)
    var open: [Handle] = []
    do {
      try Kernel.mkdir(plot("new"))
      let file = try Handle(plot("new/file"), O_CREAT | O_WRONLY)
      try file.writeAll(content)
      if isForced { open.append(file) }
      let mapped = try Handle(plot("empty"), O_RDWR)
      try mapped.truncate(to: 5000)
      let map = try Mapping(of: mapped, count: 5000)
      map[4000..<4006] = Array("mapped".utf8)
    }
    try ground.desk.served("unmount", isForced ? "--force" : "--", ground.path)
    kill(try ground.desk.agentProcess(), SIGKILL)
    try ground.unlock()
    try ground.mount()
    withExtendedLifetime(open) {}
    #expect(try firstDifference(Kernel.content(plot("new/file")), content) == nil)
    #expect(try Array(Kernel.content(plot("empty"))[4000..<4006]) == Array("mapped".utf8))
    try ground.desk.served("verify", "--deep")
  }
}
