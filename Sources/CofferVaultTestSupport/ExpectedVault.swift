public import CofferFiles
public import CofferVault

/// What a vault must hold, in the simplest form: every path, and what is there.
public struct ExpectedVault: Equatable, Sendable {
  public enum Node: Equatable, Sendable {
    case folder
    case file([UInt8], permissions: UInt16)
  }

  public var nodes: [String: Node] = [:]
  public var settings: [String: [UInt8]] = [:]

  public init() {}

  /// Reads everything that a vault holds, through every name.
  public init(reading vault: Vault) throws {
    var folders = [(VaultPath.root, "")]
    while let (folder, prefix) = folders.popLast() {
      for entry in try vault.list(folder) {
        let path = try folder.appending(entry.name)
        let text = prefix + String(decoding: entry.name, as: UTF8.self)
        switch entry.attributes.kind {
        case .directory:
          nodes[text] = .folder
          folders.append((path, text + "/"))
        default:
          nodes[text] = .file(try vault.wholeContents(of: path), permissions: entry.attributes.permissions)
        }
      }
    }
    for name in try vault.settingNames(prefix: "") { settings[name] = try vault.setting(name) }
  }

  /// What differs, for the message of a test that fails.
  public func difference(from other: ExpectedVault) -> String {
    let paths = Set(nodes.keys).union(other.nodes.keys).filter { nodes[$0] != other.nodes[$0] }.sorted()
    let names = Set(settings.keys).union(other.settings.keys).filter { settings[$0] != other.settings[$0] }.sorted()
    func text(_ node: Node?) -> String {
      switch node {
      case .folder: "folder"
      case .file(let bytes, let permissions): "\(bytes.count) bytes \(permissions)"
      case nil: "absent"
      }
    }
    return (paths.map { "\($0): \(text(nodes[$0])), not \(text(other.nodes[$0]))" } + names.map { "setting \($0)" })
      .joined(separator: "; ")
  }
}

extension Vault {
  /// The whole content of a file.
  public func wholeContents(of path: VaultPath) throws -> [UInt8] {
    let snapshot = try snapshot(of: path)
    var bytes = [UInt8](repeating: 0xaa, count: Int(snapshot.byteCount) + 1)
    let count = try bytes.withUnsafeMutableBytes { try snapshot.read(at: 0, into: $0) }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
