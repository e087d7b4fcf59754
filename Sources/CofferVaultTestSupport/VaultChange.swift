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
  case set(setting: String, to: [UInt8]?)
  /// A reader holds the present version of a file from now on.
  case hold(path: String)
  /// The oldest reader lets go.
  case release

  /// What it means for what the vault must hold.
  public func apply(to expected: inout ExpectedVault) {
    switch self {
    case .put(let path, let bytes, let permissions): expected.nodes[path] = .file(bytes, permissions: permissions)
    case .makeFolder(let path): expected.nodes[path] = .folder
    case .rename(let old, let new):
      let moved = expected.nodes.filter { $0.key == old || $0.key.hasPrefix(old + "/") }
      for (path, node) in moved {
        expected.nodes[path] = nil
        expected.nodes[new + path.dropFirst(old.count)] = node
      }
    case .remove(let path): expected.nodes[path] = nil
    case .set(let name, let value): expected.settings[name] = value
    case .hold, .release: break
    }
  }

  /// Does it.
  ///
  /// - Parameter scratch: a file outside the vault that may be overwritten.
  public func apply(to vault: Vault, readers: inout [FileSnapshot], scratch: String) throws {
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
    case .set(let name, let value): try vault.setSetting(name, to: value)
    case .hold(let path): readers.append(try vault.snapshot(of: VaultPath(path)))
    case .release: if !readers.isEmpty { readers.removeFirst() }
    }
  }
}
