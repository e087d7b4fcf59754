import CSQLiteRecorder
import CofferSystem
import Foundation
import Glibc
import Synchronization

/// Records everything that is stored below a folder, by Coffer's own calls and by SQLite, in one order.
///
/// It follows the names as the calls change them, so that a step names a file whatever it is called by then.
final class StorageRecorder: FaultPlan {
  private let root: String
  private let ignored: Set<[UInt8]>
  private let checkpointPages: CInt
  private let state: Mutex<State>
  /// SQLite is told that its syncs have failed, of which nobody knows whether they have.
  let failsSyncs = Atomic(false)

  fileprivate struct State {
    var log = StorageLog()
    var names: [NodeID: [[UInt8]: NodeID]] = [.root: [:]]
    /// By the file system's own number, which another file may get once this one is gone.
    var nodes: [UInt64: NodeID]
    /// SQLite's open files.
    var files: [UInt: NodeID] = [:]
  }

  /// - Parameters:
  ///   - folder: empty, without symbolic links on its way.
  ///   - ignored: names of files that mean nothing to what is stored.
  ///   - checkpointPages: pages in SQLite's log after which it is copied to where they belong; nil leaves the default.
  init(
    recording folder: String, except ignored: Set<String> = [], checkpointingAfter checkpointPages: CInt? = nil
  ) throws {
    Self.install()
    root = folder
    self.checkpointPages = checkpointPages ?? 0
    self.ignored = Set(ignored.map { Array($0.utf8) })
    var status = stat()
    guard stat(folder, &status) == 0 else { throw SystemError(code: errno, call: "stat") }
    state = Mutex(State(nodes: [UInt64(status.st_ino): .root]))
    Self.recorders.withLock { $0[folder] = Weak(recorder: self) }
  }

  deinit { Self.recorders.withLock { _ = $0.removeValue(forKey: root) } }

  var log: StorageLog { state.withLock { $0.log } }
  func mark(_ step: StorageStep) { state.withLock { $0.log.steps.append(step) } }

  // MARK: Coffer's own calls

  func willCall(_ call: SystemCall) throws(SystemError) {}

  func observe(_ operation: StorageOperation) {
    state.withLock { state in
      switch operation {
      case .open(let descriptor, let name, let folder, let mode):
        guard let number = Self.number(descriptor) else { return }
        guard let place = place(of: name, in: folder, state) else {
          // It may have got the number of a file that is gone.
          if state.nodes[number] != .root { state.nodes[number] = nil }
          return
        }
        let node = state.open(place.name, in: place.folder, isFolder: mode.contains(.directory))
        state.nodes[number] = node
        if mode.contains(.truncate) { state.log.steps.append(.truncate(node, byteCount: 0)) }
      case .openUnnamed, .link: preconditionFailure("the vault makes no files without names")
      case .write(let descriptor, let offset, let bytes):
        guard let node = self.node(descriptor, state) else { return }
        state.log.steps.append(.write(node, offset: Int(offset), bytes: Array(bytes)))
      case .append(let descriptor, let bytes):
        guard let node = self.node(descriptor, state) else { return }
        let offset = Int(lseek(descriptor, 0, SEEK_CUR)) - bytes.count
        state.log.steps.append(.write(node, offset: offset, bytes: Array(bytes)))
      case .truncate(let descriptor, let byteCount):
        guard let node = self.node(descriptor, state) else { return }
        state.log.steps.append(.truncate(node, byteCount: Int(byteCount)))
      case .punch(let descriptor, let range):
        guard let node = self.node(descriptor, state) else { return }
        state.log.steps.append(.punch(node, range: Int(range.lowerBound)..<Int(range.upperBound)))
      case .syncData(let descriptor), .sync(let descriptor):
        guard let node = self.node(descriptor, state) else { return }
        state.log.steps.append(.sync(node))
      case .makeDirectory(let name, let folder):
        guard let place = place(of: name, in: folder, state) else { return }
        _ = state.open(place.name, in: place.folder, isFolder: true)
      case .rename(let old, let oldFolder, let new, let newFolder):
        guard let from = place(of: old, in: oldFolder, state), let to = place(of: new, in: newFolder, state),
          let node = state.names[from.folder]?.removeValue(forKey: from.name)
        else { return }
        state.names[to.folder]?[to.name] = node
        state.log.steps.append(.rename(node, old: from.name, in: from.folder, new: to.name, to: to.folder))
      case .unlink(let name, let folder), .removeDirectory(let name, let folder):
        guard let place = place(of: name, in: folder, state) else { return }
        state.unlink(place.name, in: place.folder)
      }
    }
  }

  private static func number(_ descriptor: CInt) -> UInt64? {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
  }

  private func node(_ descriptor: CInt, _ state: State) -> NodeID? {
    Self.number(descriptor).flatMap { state.nodes[$0] }
  }

  /// The folder and last name of a path, or nil where it is not below the recorded folder.
  private func place(of name: [UInt8], in folder: CInt?, _ state: State) -> (folder: NodeID, name: [UInt8])? {
    var current: NodeID
    var rest = name
    if name.first == UInt8(ascii: "/") {
      guard name.starts(with: Array((root + "/").utf8)) else { return nil }
      current = .root
      rest = Array(name.dropFirst(root.utf8.count + 1))
    } else {
      guard let folder, let node = node(folder, state) else { return nil }
      current = node
    }
    let parts = rest.split(separator: UInt8(ascii: "/")).map(Array.init)
    guard let last = parts.last, !ignored.contains(last) else { return nil }
    for part in parts.dropLast() {
      guard let next = state.names[current]?[part] else { return nil }
      current = next
    }
    return (current, last)
  }

  // MARK: SQLite's calls

  fileprivate func observe(
    _ operation: coffer_sqlite_operation, _ file: UnsafeRawPointer?, _ path: [UInt8], _ bytes: UnsafeRawBufferPointer,
    _ offset: Int
  ) {
    let file = file.map { UInt(bitPattern: $0) }
    let bytes = Array(bytes)
    state.withLock { state in
      switch operation {
      case coffer_sqlite_open:
        guard let file, let place = place(of: path, in: nil, state) else { return }
        state.files[file] = state.open(place.name, in: place.folder, isFolder: false)
      case coffer_sqlite_write:
        guard let node = file.flatMap({ state.files[$0] }) else { return }
        state.log.steps.append(.write(node, offset: offset, bytes: bytes))
      case coffer_sqlite_truncate:
        guard let node = file.flatMap({ state.files[$0] }) else { return }
        state.log.steps.append(.truncate(node, byteCount: offset))
      case coffer_sqlite_sync:
        guard let node = file.flatMap({ state.files[$0] }) else { return }
        state.log.steps.append(.sync(node))
      case coffer_sqlite_sync_folder:
        guard let place = place(of: path, in: nil, state) else { return }
        state.log.steps.append(.sync(place.folder))
      default:
        guard let place = place(of: path, in: nil, state) else { return }
        state.unlink(place.name, in: place.folder)
      }
    }
  }

  // MARK: One layer below SQLite for the whole process

  private struct Weak { weak var recorder: StorageRecorder? }
  private static let recorders = Mutex<[String: Weak]>([:])

  /// The recorder whose folder holds `path`.
  private static func recorder(of path: String) -> StorageRecorder? {
    recorders.withLock { recorders in
      recorders.first { path.hasPrefix($0.key + "/") }?.value.recorder
    }
  }

  private static let installation: CInt = coffer_sqlite_record(
    { operation, file, path, bytes, count, offset in
      guard let path else { return }
      let text = String(cString: path)
      guard let recorder = StorageRecorder.recorder(of: text) else { return }
      recorder.observe(
        operation, file, Array(text.utf8), UnsafeRawBufferPointer(start: bytes, count: Int(count)), Int(offset))
    },
    { path in path.flatMap { StorageRecorder.recorder(of: String(cString: $0))?.checkpointPages } ?? 0 },
    { path in
      let recorder = path.flatMap { StorageRecorder.recorder(of: String(cString: $0)) }
      return recorder?.failsSyncs.load(ordering: .relaxed) == true ? 1 : 0
    })

  private static func install() { precondition(installation == 0, "SQLite takes no recording layer") }
}

extension StorageRecorder.State {
  /// The node that has a name, made where there is none.
  fileprivate mutating func open(_ name: [UInt8], in folder: NodeID, isFolder: Bool) -> NodeID {
    if let known = names[folder]?[name] { return known }
    let node = NodeID(value: log.paths.count)
    names[folder]?[name] = node
    if isFolder { names[node] = [:] }
    let parent = log.paths[folder] ?? ""
    log.paths[node] = (parent.isEmpty ? "" : parent + "/") + String(decoding: name, as: UTF8.self)
    log.steps.append(.create(node, isFolder: isFolder, name: name, in: folder))
    return node
  }

  fileprivate mutating func unlink(_ name: [UInt8], in folder: NodeID) {
    guard let node = names[folder]?.removeValue(forKey: name) else { return }
    log.steps.append(.unlink(node, name: name, in: folder))
  }
}
