internal import CofferFiles
internal import CofferSystem
public import CofferVault

/// One thing that a workload does to a vault. A new operation is a case here, a line in ``VaultWorkload`` that draws it,
/// and its two meanings below.
public enum VaultChange: Sendable {
  case put(path: String, bytes: [UInt8], permissions: UInt16)
  case makeFolder(path: String)
  case rename(path: String, to: String)
  case remove(path: String)
  /// Another name of a file.
  case link(path: String, to: String)
  case symbolicLink(path: String, target: [UInt8])
  /// Two files get each other's names.
  case exchange(path: String, with: String)
  case setAttribute(path: String, name: String, to: [UInt8]?)
  /// Within a file or behind its end.
  case write(path: String, offset: Int, bytes: [UInt8])
  case truncate(path: String, byteCount: Int)
  case punch(path: String, range: Range<Int>)
  case set(setting: String, to: [UInt8]?)
  /// A handle for writing stays open on a file from now on.
  case openHandle(path: String)
  /// Written through a handle, and not given to the index.
  case writeThrough(handle: Int, offset: Int, bytes: [UInt8])
  case closeHandle(Int)
  /// A reader holds the present version of a file from now on.
  case hold(path: String)
  /// The oldest reader lets go.
  case release

  /// What it means for what the vault must hold.
  public func apply(to expected: inout ExpectedVault) {
    switch self {
    case .put(let path, let bytes, let permissions):
      expected.nodes[path] = .file(bytes, permissions: permissions)
      expected.identities[path] = expected.makeIdentity()
    case .makeFolder(let path): expected.nodes[path] = .folder
    case .rename(let old, let new):
      // A rename of a file to another of its own names does nothing (POSIX).
      if let identity = expected.identities[old], expected.identities[new] == identity { return }
      let moved = expected.nodes.filter { $0.key == old || $0.key.hasPrefix(old + "/") }
      for (path, node) in moved {
        let place = new + path.dropFirst(old.count)
        expected.nodes[path] = nil
        expected.nodes[place] = node
        expected.identities[place] = expected.identities.removeValue(forKey: path)
      }
    case .remove(let path):
      expected.nodes[path] = nil
      expected.identities[path] = nil
    case .link(let path, let new):
      expected.nodes[new] = expected.nodes[path]
      expected.identities[new] = expected.identities[path]
    case .symbolicLink(let path, let target): expected.nodes[path] = .symbolicLink(target)
    case .exchange(let one, let two):
      (expected.nodes[one], expected.nodes[two]) = (expected.nodes[two], expected.nodes[one])
      (expected.identities[one], expected.identities[two]) = (expected.identities[two], expected.identities[one])
    case .setAttribute(let path, let name, let value):
      expected.changeFile(expected.identities[path]) { _, attributes in attributes[name] = value }
    case .write(let path, let offset, let new):
      expected.write(new, at: offset, of: expected.identities[path])
      expected.join(path)
    case .truncate(let path, let count):
      expected.changeFile(expected.identities[path]) { bytes, _ in
        bytes = Array(bytes.prefix(count)) + [UInt8](repeating: 0, count: max(0, count - bytes.count))
      }
      expected.join(path)
    case .punch(let path, let range):
      expected.changeFile(expected.identities[path]) { bytes, _ in
        let inside = range.clamped(to: 0..<bytes.count)
        bytes.replaceSubrange(inside, with: repeatElement(0, count: inside.count))
      }
      expected.join(path)
    case .openHandle(let path): expected.identities[path].map { expected.handles.append($0) }
    case .writeThrough(let handle, let offset, let new):
      let identity = expected.handles[handle]
      if new.isEmpty { return }
      if expected.unjoined[identity] == nil { expected.unjoined[identity] = expected.content(of: identity) }
      expected.write(new, at: offset, of: identity)
    case .closeHandle(let handle): expected.unjoined[expected.handles.remove(at: handle)] = nil
    case .set(let name, let value): expected.settings[name] = value
    case .hold, .release: break
    }
  }

  /// Does it.
  ///
  /// - Parameter scratch: a file outside the vault that may be overwritten.
  public func apply(to vault: Vault, holding held: inout HeldFiles, scratch: String) throws {
    switch self {
    case .put(let path, let bytes, let permissions):
      let file = try FileSystem().open(scratch, [.readWrite, .create, .truncate])
      try file.writeAll(bytes)
      let source = ImportSource(
        descriptor: file, byteCount: UInt64(bytes.count), permissions: permissions, modified: nil)
      try vault.importFile(source, to: VaultPath(path), replacing: true)
    case .makeFolder(let path): try vault.makeDirectory(at: VaultPath(path))
    case .rename(let old, let new): try vault.rename(VaultPath(old), to: VaultPath(new))
    case .remove(let path): try vault.remove(VaultPath(path))
    case .link(let path, let new): try vault.link(VaultPath(path), to: VaultPath(new))
    case .symbolicLink(let path, let target): try vault.makeSymbolicLink(at: VaultPath(path), to: target)
    case .exchange(let one, let two): try vault.rename(VaultPath(one), to: VaultPath(two), mode: .exchange)
    case .setAttribute(let path, let name, let value):
      let number = try vault.attributes(at: VaultPath(path)).number
      if let value {
        try vault.setExtendedAttribute(Array(name.utf8), of: number, to: value)
      } else {
        try vault.removeExtendedAttribute(Array(name.utf8), of: number)
      }
    case .write(let path, let offset, let bytes):
      try Self.withFile(path, vault) { try $0.write(bytes, at: UInt64(offset)) }
    case .truncate(let path, let count): try Self.withFile(path, vault) { try $0.truncate(to: UInt64(count)) }
    case .punch(let path, let range):
      try Self.withFile(path, vault) { try $0.punchHole(UInt64(range.lowerBound)..<UInt64(range.upperBound)) }
    case .set(let name, let value): try vault.setSetting(name, to: value)
    case .openHandle(let path): held.handles.append(try vault.open(VaultPath(path), .writing))
    case .writeThrough(let handle, let offset, let bytes): try held.handles[handle].write(bytes, at: UInt64(offset))
    case .closeHandle(let handle): try held.handles.remove(at: handle).close()
    case .hold(let path): try held.hold(vault.snapshot(of: VaultPath(path)))
    case .release: try held.release()
    }
  }
}

extension VaultChange {
  private static func withFile(_ path: String, _ vault: Vault, _ body: (OpenFile) throws -> Void) throws {
    let file = try vault.open(VaultPath(path), .writing)
    try body(file)
    try file.close()
  }
}

extension ExpectedVault {
  fileprivate mutating func write(_ new: [UInt8], at offset: Int, of identity: UInt64?) {
    // A write of nothing does nothing (POSIX), behind the end too.
    if new.isEmpty { return }
    changeFile(identity) { bytes, _ in
      bytes += [UInt8](repeating: 0, count: max(0, offset + new.count - bytes.count))
      bytes.replaceSubrange(offset..<(offset + new.count), with: new)
    }
  }

  /// A handle that is closed takes everything along that was written to its file.
  fileprivate mutating func join(_ path: String) { if let identity = identities[path] { unjoined[identity] = nil } }
}

extension OpenFile {
  func write(_ bytes: [UInt8], at offset: UInt64) throws {
    try bytes.withUnsafeBytes { raw in Result { try write(raw, at: offset) } }.get()
  }
}
