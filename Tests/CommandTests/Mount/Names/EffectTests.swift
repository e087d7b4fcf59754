import Glibc
import Testing

/// What each operation does to the times and link counts of everything around it, and that it does nothing else.
@Suite struct EffectTests {
  /// A letter for each time that changes, `m` and `c`, then by how much the link count changes; `new` and `gone` for a
  /// name that comes or goes, `other` for one that means another node afterwards. A name that is not there stays as it
  /// is; the plot's own is the empty one. Whether a node that is renamed changes itself is left to the file system: the
  /// node that it becomes at its new name is not compared.
  private struct Effect: Sendable {
    let what: String
    let changes: [String: String]
    let call: @Sendable (Plot) throws -> Void

    init(_ what: String, _ changes: [String: String], _ call: @escaping @Sendable (Plot) throws -> Void) {
      self.what = what
      self.changes = changes
      self.call = call
    }
  }

  private static let names: [Effect] = [
    Effect("open with O_CREAT", ["": "mc", "new": "new"]) { try Kernel.open($0("new"), O_CREAT | O_WRONLY) },
    Effect("open with O_CREAT of what is there", [:]) { try Kernel.open($0("file"), O_CREAT | O_WRONLY) },
    Effect("mkdir", ["": "mc+1", "new": "new"]) { try Kernel.mkdir($0("new")) },
    Effect("mkdir below", ["folder": "mc+1", "folder/new": "new"]) { try Kernel.mkdir($0("folder/new")) },
    Effect("mkfifo", ["": "mc", "new": "new"]) { try Kernel.makeNode($0("new"), S_IFIFO) },
    Effect("mknod of a socket", ["": "mc", "new": "new"]) { try Kernel.makeNode($0("new"), S_IFSOCK) },
    Effect("mknod of a file", ["": "mc", "new": "new"]) { try Kernel.makeNode($0("new"), S_IFREG) },
    Effect("symlink", ["": "mc", "new": "new"]) { try Kernel.symlink("x", at: $0("new")) },
    Effect("link", ["": "mc", "new": "new", "file": "c+1", "again": "c+1"]) { try Kernel.link($0("file"), $0("new")) },
    Effect("link below", ["folder": "mc", "folder/new": "new", "empty": "c+1"]) {
      try Kernel.link($0("empty"), $0("folder/new"))
    },
    Effect("unlink of one name of two", ["": "mc", "file": "gone", "again": "c-1"]) { try Kernel.unlink($0("file")) },
    Effect("unlink below", ["folder": "mc", "folder/inside": "gone"]) { try Kernel.unlink($0("folder/inside")) },
    Effect("unlink of a link", ["": "mc", "to-file": "gone"]) { try Kernel.unlink($0("to-file")) },
    Effect("rmdir", ["": "mc-1", "bare": "gone"]) { try Kernel.rmdir($0("bare")) },
    Effect("rename", ["": "mc", "empty": "gone", "new": "new"]) { try Kernel.rename($0("empty"), $0("new")) },
    Effect("rename of a folder", ["": "mc", "bare": "gone", "new": "new"]) { try Kernel.rename($0("bare"), $0("new")) },
    Effect("rename over a file", ["": "mc", "empty": "gone", "file": "other", "again": "c-1"]) {
      try Kernel.rename($0("empty"), $0("file"))
    },
    Effect("rename to another folder", ["": "mc", "empty": "gone", "folder": "mc", "folder/new": "new"]) {
      try Kernel.rename($0("empty"), $0("folder/new"))
    },
    Effect("rename of a folder to another", ["": "mc-1", "bare": "gone", "folder": "mc+1", "folder/new": "new"]) {
      try Kernel.rename($0("bare"), $0("folder/new"))
    },
    Effect(
      "exchange of a file and a folder",
      ["": "mc-1", "folder": "mc+1", "folder/inside": "other", "bare": "other"]
    ) {
      try Kernel.rename($0("folder/inside"), $0("bare"), flags: RenameFlag.exchange)
    },
    Effect("rename to another name of the same", [:]) { try Kernel.rename($0("file"), $0("again")) },
    Effect("rename with RENAME_NOREPLACE", ["": "mc", "empty": "gone", "new": "new"]) {
      try Kernel.rename($0("empty"), $0("new"), flags: RenameFlag.noReplace)
    },
  ]

  /// Kernels before 6.2 do not ask a file system in a program for a file without a name.
  private static let unnamed: [Effect] =
    !GNU.kernelIsAtLeast(6, 2)
    ? []
    : [
      Effect("open with O_TMPFILE", [:]) { try Kernel.open($0.path, GNU.unnamed | O_RDWR).write("x") },
      Effect("link of what has no name yet", ["": "mc", "new": "new"]) {
        let file = try Kernel.open($0.path, GNU.unnamed | O_RDWR)
        try Kernel.link("/proc/self/fd/\(file.number)", $0("new"), following: true)
      },
    ]

  private static let attributes: [Effect] = [
    Effect("chmod", ["file": "c", "again": "c"]) { try Kernel.chmod($0("file"), 0o600) },
    Effect("chmod of a folder", ["folder": "c"]) { try Kernel.chmod($0("folder"), 0o700) },
    Effect("chmod through a link", ["file": "c", "again": "c"]) { try Kernel.chmod($0("to-file"), 0o600) },
    Effect("chown", ["empty": "c"]) { try Kernel.chown($0("empty"), group: Int(getegid())) },
    Effect("chown of a link", ["to-file": "c"]) { try Kernel.chown($0("to-file"), user: Int(geteuid())) },
    Effect("setting both times", ["empty": "mc"]) {
      try Kernel.setTimes($0("empty"), accessed: Moment(1, 2), modified: Moment(3, 4))
    },
    Effect("setting the time of access", ["empty": "c"]) { try Kernel.setTimes($0("empty"), accessed: Moment(1, 2)) },
    Effect("setting no time", [:]) { try Kernel.setTimes($0("empty")) },
    Effect("setting a link's times", ["to-file": "mc"]) { try Kernel.setTimes($0("to-file"), modified: Moment(1, 2)) },
    Effect("touch", ["empty": "mc"]) { try Kernel.touch($0("empty")) },
    Effect("setxattr", ["empty": "c"]) { try Kernel.setAttribute($0("empty"), "user.a", "1") },
    Effect("setxattr and removexattr", ["bare": "c"]) {
      try Kernel.setAttribute($0("bare"), "user.a", "1")
      try Kernel.removeAttribute($0("bare"), "user.a")
    },
    Effect("reading of everything", [:]) { _ = try Tree($0.path) },
  ]

  private static let content: [Effect] = [
    Effect("write", ["file": "mc", "again": "mc"]) { try Kernel.open($0("file"), O_WRONLY).write("x") },
    Effect("write beyond the end", ["empty": "mc"]) { try Kernel.open($0("empty"), O_WRONLY).write("x", at: 1 << 20) },
    Effect("truncate", ["file": "mc", "again": "mc"]) { try Kernel.truncate($0("file"), to: 3) },
    Effect("truncate to more", ["empty": "mc"]) { try Kernel.truncate($0("empty"), to: 100_000) },
    Effect("ftruncate", ["empty": "mc"]) { try Kernel.open($0("empty"), O_WRONLY).truncate(to: 5) },
    Effect("open with O_TRUNC", ["file": "mc", "again": "mc"]) { try Kernel.open($0("file"), O_WRONLY | O_TRUNC) },
    Effect("open for reading with O_TRUNC", ["file": "mc", "again": "mc"]) {
      try Kernel.open($0("file"), O_RDONLY | O_TRUNC)
    },
    Effect("fallocate behind the end", ["file": "mc", "again": "mc"]) {
      try Kernel.open($0("file"), O_RDWR).change(RangeChange.allocate, 0, 100_000)
    },
    Effect("fallocate with FALLOC_FL_PUNCH_HOLE", ["file": "mc", "again": "mc"]) {
      try Kernel.open($0("file"), O_RDWR).change(RangeChange.punchHole | RangeChange.keepSize, 2, 3)
    },
    Effect("fallocate with FALLOC_FL_ZERO_RANGE", ["file": "mc", "again": "mc"]) {
      try Kernel.open($0("file"), O_RDWR).change(RangeChange.zero, 2, 3)
    },
    Effect("fallocate of what is there", ["file": "mc", "again": "mc"]) {
      try Kernel.open($0("file"), O_RDWR).change(RangeChange.allocate, 0, 2)
    },
    Effect("fallocate behind the end that keeps the size", ["empty": "mc"]) {
      try Kernel.open($0("empty"), O_RDWR).change(RangeChange.keepSize, 0, 100)
    },
    Effect("fallocate with FALLOC_FL_PUNCH_HOLE where there is nothing", ["empty": "mc"]) {
      try Kernel.open($0("empty"), O_RDWR).change(RangeChange.punchHole | RangeChange.keepSize, 10, 100)
    },
    Effect("copy_file_range", ["empty": "mc"]) {
      try Kernel.open($0("empty"), O_WRONLY).copy(4, from: Kernel.open($0("file"), O_RDONLY), at: 0, to: 0)
    },
    Effect("a mapping that is written to and synced", ["file": "mc", "again": "mc"]) {
      let map = try Mapping(of: Kernel.open($0("file"), O_RDWR), count: 8)
      map[0] = 1
      try map.sync()
    },
    Effect("a private mapping that is written to", [:]) {
      let map = try Mapping(of: Kernel.open($0("file"), O_RDWR), count: 8, isPrivate: true)
      map[0] = 1
      try map.sync()
    },
    Effect("fsync of what has not changed", [:]) { try Kernel.open($0("file"), O_RDWR).sync() },
  ]

  @Test(arguments: Ground.Kind.here) func `a change of names is seen in the folders`(kind: Ground.Kind) throws {
    try hold(Self.names + Self.unnamed, on: kind)
  }

  @Test(arguments: Ground.Kind.here) func `a change of attributes is seen in the node`(kind: Ground.Kind) throws {
    try hold(Self.attributes, on: kind)
  }

  @Test(arguments: Ground.Kind.here) func `a change of content is seen in the file`(kind: Ground.Kind) throws {
    try hold(Self.content, on: kind)
  }

  private func hold(_ effects: [Effect], on kind: Ground.Kind) throws {
    let ground = try Ground.shared(kind)
    for effect in effects {
      let plot = try ground.plot()
      try plot.furnish()
      let before = try Tree(plot.path).nodes.mapValues(\.stat)
      before.values.map(\.changed).max()?.waitUntilPast()
      try effect.call(plot)
      let after = try Tree(plot.path).nodes.mapValues(\.stat)
      var changes: [String: String] = [:]
      for name in Set(before.keys).union(after.keys) {
        let change = Self.change(before[name], after[name])
        changes[name.isEmpty ? "" : String(name.dropFirst())] = change.isEmpty ? nil : change
      }
      #expect(changes == effect.changes, "\(effect.what)")
    }
  }

  private static func change(_ before: NodeStat?, _ after: NodeStat?) -> String {
    guard let before else { return "new" }
    guard let after else { return "gone" }
    if before.number != after.number { return "other" }
    let links = after.links - before.links
    return (before.modified == after.modified ? "" : "m") + (before.changed == after.changed ? "" : "c")
      + (links == 0 ? "" : links > 0 ? "+\(links)" : "\(links)")
  }

  @Test(arguments: Ground.Kind.here) func `a new node's times are the present, and its folder's with them`(
    kind: Ground.Kind
  ) throws {
    let plot = try Plot.on(kind)
    var now = timespec()
    clock_gettime(CLOCK_REALTIME_COARSE, &now)
    let before = Moment(now)
    try plot.furnish()
    clock_gettime(CLOCK_REALTIME, &now)
    for name in ["file", "empty", "folder", "to-file", "fifo", "folder/inside", "."] {
      let stat = try Kernel.stat(plot(name))
      // The plot was there before, and nobody has read it.
      for time in [name == "." ? stat.modified : stat.accessed, stat.modified, stat.changed] {
        #expect(time >= before && time <= Moment(now), "\(name)")
      }
    }
  }
}
