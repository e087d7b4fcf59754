import CofferTestSupport
import Foundation
import Glibc
import Synchronization
import Testing

/// A folder whose behaviour is tried: of a mounted vault, or a plain one. What a plain folder does not pass is no test of
/// a mount.
///
/// The plain one is made where `TMPDIR` says, so that the tests can be held to any file system.
final class Ground: @unchecked Sendable {
  enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case plain, mount

    var testDescription: String { rawValue }

    /// What can be tried here.
    static let here: [Kind] = mountIsThere ? [.plain, .mount] : [.plain]
  }

  static let missing: Comment =
    "nothing is mounted: /dev/fuse cannot be opened here, or this coffer has no command mount; only plain folders are tried"

  /// Whether a vault can be mounted here.
  static let mountIsThere: Bool = {
    guard let device = try? Handle("/dev/fuse", O_RDWR) else { return false }
    return withExtendedLifetime(device) {
      (try? Desk().run("coffer", ["mount", "--help"]).code) == 0
    }
  }()

  let kind: Kind
  let path: String
  /// Where `coffer` reaches the mounted vault. One test at a time may use it: of a ground that is shared, none.
  let desk: Desk
  private let plotCount = Atomic(0)

  /// - Parameter options: for `coffer mount`.
  init(_ kind: Kind, options: [String] = []) throws {
    self.kind = kind
    desk = try Desk()
    path = desk.path("ground")
    // Other users come by here.
    try Kernel.chmod(desk.root, 0o711)
    try Kernel.mkdir(path)
    if kind == .mount {
      try desk.makeVault()
      try unlock()
      try mount(options)
    }
    if !options.contains("--read-only") { try Kernel.chmod(path, 0o755) }
  }

  deinit {
    guard kind == .mount else { return }
    _ = try? desk.run("coffer", ["unmount", "--force", path])
    _ = try? desk.run("coffer", ["agent", "stop"])
    // Nothing that a test made is removed through a mount that stayed.
    umount2(path, 2)
  }

  /// Holds the vault open, however long other tests keep this one waiting.
  func unlock() throws { try desk.unlock("--idle-lock", "0") }

  /// - Parameter isForOthers: whether other users may come in; root alone may let them.
  func mount(_ options: [String] = [], isForOthers: Bool = Person.canBeAnother) throws {
    let others = isForOthers ? ["--allow-other"] : []
    let outcome = try desk.run("coffer", ["mount", path] + others + options)
    try #require(outcome.code == 0, "coffer mount: \(outcome.errors)")
  }

  func unmount() throws {
    let outcome = try desk.run("coffer", ["unmount", path])
    try #require(outcome.code == 0, "coffer unmount: \(outcome.errors)")
  }

  // MARK: Sharing

  private final class Reference: Sendable {
    private let ground = Mutex<WeakGround>(WeakGround())

    func get(_ kind: Kind) throws -> Ground {
      try ground.withLock { reference in
        if let ground = reference.ground { return ground }
        let ground = try Ground(kind)
        reference.ground = ground
        return ground
      }
    }
  }

  private struct WeakGround {
    weak var ground: Ground?
  }

  private static let plain = Reference()
  private static let mounted = Reference()

  /// A ground that tests have together while any of them needs it, each on a plot of its own.
  static func shared(_ kind: Kind) throws -> Ground { try (kind == .plain ? plain : mounted).get(kind) }

  /// A new folder on the ground.
  func plot() throws -> Plot {
    let number = plotCount.add(1, ordering: .relaxed).newValue
    let plot = Plot(path: path + "/plot-\(number)", ground: self)
    try Kernel.mkdir(plot.path)
    return plot
  }
}

/// A folder that one test has to itself.
struct Plot: Sendable {
  let path: String
  let ground: Ground

  /// A new one on the shared ground.
  static func on(_ kind: Ground.Kind) throws -> Plot { try Ground.shared(kind).plot() }

  func callAsFunction(_ name: String) -> String { path + "/" + name }

  var isMount: Bool { ground.kind == .mount }

  /// One node of each kind, for calls to be tried on: `file`, which is also `again`, `empty`, `folder` with `inside`,
  /// `bare`, which is an empty folder, the links `to-file`, `to-folder`, `dangling` and `loop`, and `fifo`.
  func furnish() throws {
    try Kernel.makeFile(self("file"), "content\n")
    try Kernel.link(self("file"), self("again"))
    try Kernel.makeFile(self("empty"))
    try Kernel.mkdir(self("folder"))
    try Kernel.makeFile(self("folder/inside"), "inside\n")
    try Kernel.mkdir(self("bare"))
    try Kernel.symlink("file", at: self("to-file"))
    try Kernel.symlink("folder", at: self("to-folder"))
    try Kernel.symlink("nowhere", at: self("dangling"))
    try Kernel.symlink("loop", at: self("loop"))
    try Kernel.makeNode(self("fifo"), S_IFIFO)
  }
}
