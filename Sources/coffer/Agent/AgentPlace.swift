internal import CofferKeys
internal import CofferSystem
internal import Foundation

/// Where the agent of a vault is found: a socket in a folder that only this user may enter.
struct AgentPlace {
  private let path: String
  private let folder: OwnedDescriptor
  private let name: String
  private let files = FileSystem()

  /// `$XDG_RUNTIME_DIR/coffer`, which the system empties when the user's last session ends; where it is not set, a folder
  /// beside the key stores. So too where it is another user's, as behind su(1): what is made there would shut that user out.
  /// Nil where no home is known, beside which it could be.
  private static var folderPath: String? {
    get throws {
      guard let runtime = Environment["XDG_RUNTIME_DIR"], !isForeign(runtime) else { return try statePath }
      return runtime + "/coffer"
    }
  }

  /// Whether a path leads to another user's folder, or through one that lets only them pass.
  private static func isForeign(_ path: String) -> Bool {
    do {
      return try FileSystem().open(path, .directory).status().owner != ProcessHardening.userID
    } catch {
      return !error.isAbsent
    }
  }

  /// In the user's own home where the environment's is another's, as behind `sudo -E`.
  private static var statePath: String? {
    get throws {
      guard let state = try Environment.folderIfKnown("XDG_STATE_HOME", default: ".local/state") else { return nil }
      let path = state + "/coffer/run"
      let base = Environment["XDG_STATE_HOME"] ?? Environment["HOME"] ?? ""
      guard isInForeignHands(path, from: base), let home = UserHome.path else { return path }
      return home + "/.local/state/coffer/run"
    }
  }

  /// Whether what is there of a path from `base` on is another user's than the system's: what is made there would shut them out, and
  /// they choose where their links lead.
  private static func isInForeignHands(_ path: String, from base: String) -> Bool {
    func isForeign(_ status: FileStatus) -> Bool { status.owner != ProcessHardening.userID && status.owner != 0 }
    var prefix = base
    for name in [""] + path.dropFirst(base.count).split(separator: "/").map(String.init) {
      if !name.isEmpty { prefix += "/" + name }
      do {
        guard let found = try FileSystem().status(of: prefix) else { return false }
        if isForeign(found) { return true }
        guard found.kind == .symbolicLink else { continue }
        if isForeign(try FileSystem().open(prefix, .directory).status()) { return true }
      } catch {
        // A link of one's own, or of root's, to nothing: nothing is made there.
        return !error.isAbsent
      }
    }
    return false
  }

  /// Where the agent of somebody with another environment may be: what runs for the same user without a session, such as
  /// a timer or what locks the screen, often has no `XDG_RUNTIME_DIR`.
  private static var otherFolderPaths: [String] {
    let first = try? folderPath
    return [try? statePath, "/run/user/\(ProcessHardening.userID)/coffer"].compactMap(\.self).filter { $0 != first }
  }

  /// All of these that are known.
  private static var folderPaths: [String] { [try? folderPath].compactMap(\.self) + otherFolderPaths }

  /// A connection to a vault's agent; nil where none is found. Throws where none is, and the first place to look cannot be told.
  static func connect(_ vault: VaultID) throws -> LocalSocket? {
    let first = Result { try of(vault)?.connect() }
    if let socket = try? first.get() { return socket }
    // What is not this user's alone is nothing to be found.
    for path in otherFolderPaths {
      if let place = try? at(path, vault), let socket = try? place.connect() { return socket }
    }
    return try first.get()
  }

  /// Those of all agents that are found, some of which may be gone.
  static var all: [AgentPlace] {
    folderPaths.flatMap { path -> [AgentPlace] in
      guard let folder = try? ownFolder(path) else { return [] }
      let names = (try? FileSystem().names(in: folder)) ?? []
      return names.compactMap { name in
        let text = String(decoding: name, as: UTF8.self)
        guard text.hasSuffix(suffix) else { return nil }
        return AgentPlace(path: path, folder: folder, name: String(text.dropLast(suffix.count)))
      }
    }
  }

  private static let suffix = ".sock"
  private static let lockSuffix = ".lock"

  /// The place of a vault's agent; nil where there is no folder of agents yet, unless it is to be made.
  ///
  /// Throws where the folder is not this user's alone: whoever can write there could put another socket in its place.
  static func of(_ vault: VaultID, making: Bool = false) throws -> AgentPlace? {
    guard let path = try folderPath else {
      // Whoever has none has no agent: it is said where one is to be started.
      if making { throw Environment.noHome(orSet: "XDG_STATE_HOME") }
      return nil
    }
    let files = FileSystem()
    guard path.hasPrefix("/") else { throw Failure.usage("XDG_RUNTIME_DIR and XDG_STATE_HOME must be absolute paths") }
    if making { try explaining(path) { () throws(SystemError) in try files.makeDirectories(path) } }
    return try at(path, vault)
  }

  /// Where clients look first for the agent of a vault, of the folders that are there. A runtime folder is the system's to make, when the
  /// user's next session begins, and a state folder that is gone may have gone with the user's home.
  static func again(of vault: VaultID) throws -> AgentPlace? {
    let files = FileSystem()
    if let runtime = Environment["XDG_RUNTIME_DIR"], try files.status(of: runtime) != nil, !isForeign(runtime) {
      let path = runtime + "/coffer"
      _ = try? files.makeDirectory(path)
      if let place = try? at(path, vault) { return place }
    }
    guard let path = try statePath, try files.status(of: String(path.dropLast("/coffer/run".count))) != nil else {
      return nil
    }
    try files.makeDirectories(path)
    return try at(path, vault)
  }

  /// Runs `body`; what fails says where it was tried, and who decided that.
  private static func explaining<Result>(_ path: String, _ body: () throws(SystemError) -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      throw Failure(
        code: Failure.code(error),
        text:
          "agents cannot be started in their folder, \(PathText.shown(Array(path.utf8))): \(error); XDG_RUNTIME_DIR, or where that is not "
          + "yours XDG_STATE_HOME or HOME, say where it lies")
    }
  }

  private static func at(_ path: String, _ vault: VaultID) throws -> AgentPlace? {
    try ownFolder(path).map { AgentPlace(path: path, folder: $0, name: vault.description) }
  }

  /// Nil where there is none. Throws where it is not this user's alone.
  private static func ownFolder(_ path: String) throws -> OwnedDescriptor? {
    let files = FileSystem()
    guard let found = try files.status(of: path) else { return nil }
    let isOwn = found.kind == .directory && found.owner == ProcessHardening.userID
    let folder = isOwn ? try files.open(path, [.directory, .noFollow]) : nil
    guard let folder, case let status = try folder.status(), status.owner == ProcessHardening.userID,
      status.permissions & 0o077 == 0
    else {
      throw Failure(
        code: 77,
        text:
          "the folder of agents, \(PathText.shown(Array(path.utf8))), is not yours alone: where it is yours, chmod 700; else remove or "
          + "rename it, or have whose it is do so")
    }
    return folder
  }

  /// A connection to the agent; nil where none listens. Throws where another user's process does.
  func connect() throws -> LocalSocket? {
    guard let socket = try LocalSocket.connect(name + Self.suffix, in: folder, path: path) else { return nil }
    guard try socket.peer() == ProcessHardening.userID else {
      throw Failure(code: 77, text: "the process that listens at the agent's socket is another user's")
    }
    return socket
  }

  /// Listens. What an agent that was killed left is replaced; the caller holds ``takeName()``.
  func listen() throws -> LocalSocket {
    try files.unlink(name + Self.suffix, in: folder)
    return try LocalSocket.listen(name + Self.suffix, in: folder, path: path)
  }

  func isSame(as other: AgentPlace) -> Bool { (path, name) == (other.path, other.name) }

  /// The socket that clients find by the place's path, to tell it from another one; nil where there is none.
  var found: FileStatus? { try? files.status(of: path + "/" + name + Self.suffix) }

  /// Whether `name` is what ``takeName()`` would take: others may have removed its file.
  func isTaken(by name: OwnedDescriptor) -> Bool {
    guard let held = try? name.status(), let found = try? files.status(of: self.name + Self.lockSuffix, in: folder)
    else { return false }
    return found.isSameFile(as: held)
  }

  /// Where agents claim their mounts; see `MountClaims`.
  func openClaims() throws -> OwnedDescriptor {
    try files.open(Self.claimsName, [.readWrite, .create, .noFollow], in: folder)
  }

  /// The same of all agents that are found, to be asked.
  static var claimFiles: [OwnedDescriptor] {
    folderPaths.compactMap { path in
      guard let folder = try? ownFolder(path) else { return nil }
      return try? FileSystem().open(claimsName, [.readOnly, .noFollow], in: folder)
    }
  }

  private static let claimsName = "mounts"

  /// From here on nobody finds the agent.
  func remove() { _ = try? files.unlink(name + Self.suffix, in: folder) }

  /// What an agent holds as long as it lives, so that only one listens for vaults of one id; nil where another has it.
  func takeName() throws -> OwnedDescriptor? {
    let lock = try files.open(name + Self.lockSuffix, [.readWrite, .create, .noFollow], in: folder)
    return try lock.lockExclusively() ? lock : nil
  }

  /// What starts an agent, so that of two that do at the same moment one finds the other's: waits for its turn.
  func takeStart() throws -> OwnedDescriptor {
    try Self.explaining(path) { () throws(SystemError) in
      let lock = try files.open(name + ".start", [.readWrite, .create, .noFollow], in: folder)
      try lock.waitForExclusiveLock()
      return lock
    }
  }
}
