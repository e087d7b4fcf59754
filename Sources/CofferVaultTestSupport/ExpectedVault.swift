public import CofferFiles
public import CofferVault

/// What a vault must hold, in the simplest form: every path, and what is there.
public struct ExpectedVault: Equatable, Sendable {
  public enum Node: Equatable, Sendable {
    case folder
    case file([UInt8], permissions: UInt16, attributes: [String: [UInt8]] = [:])
    case symbolicLink([UInt8])
  }

  public var nodes: [String: Node] = [:]
  public var settings: [String: [UInt8]] = [:]
  /// What tells files apart: names of one file have one. The numbers mean nothing.
  var identities: [String: UInt64] = [:]
  private var lastIdentity: UInt64 = 0
  /// The files that handles are open on, also those without a name.
  var handles: [UInt64] = []
  /// What files held when they last joined the index, where more was written through a handle since.
  var unjoined: [UInt64: [UInt8]] = [:]

  public init() {}

  /// What a commit of the index alone makes durable: everything but what was written through handles since their files
  /// joined.
  public var joined: ExpectedVault {
    var result = self
    result.unjoined = [:]
    for (identity, bytes) in unjoined { result.changeFile(identity) { content, _ in content = bytes } }
    return result
  }

  /// Changes a file under all of its names.
  mutating func changeFile(_ identity: UInt64?, _ body: (inout [UInt8], inout [String: [UInt8]]) -> Void) {
    for (path, found) in identities where found == identity {
      guard case .file(var bytes, let permissions, var attributes) = nodes[path] else { continue }
      body(&bytes, &attributes)
      nodes[path] = .file(bytes, permissions: permissions, attributes: attributes)
    }
  }

  /// What a file holds; nil where it has no name.
  func content(of identity: UInt64) -> [UInt8]? {
    guard let path = identities.first(where: { $0.value == identity })?.key, case .file(let bytes, _, _) = nodes[path]
    else { return nil }
    return bytes
  }

  /// One that no file has or had: what is drawn must not depend on the numbers that files happen to have.
  mutating func makeIdentity() -> UInt64 {
    lastIdentity += 1
    return lastIdentity
  }

  /// Sets of names that stand for one file.
  private var sharedNames: Set<Set<String>> {
    Set(Dictionary(grouping: identities.keys) { identities[$0] ?? 0 }.values.filter { $0.count > 1 }.map { Set($0) })
  }

  public static func == (left: ExpectedVault, right: ExpectedVault) -> Bool {
    left.nodes == right.nodes && left.settings == right.settings && left.sharedNames == right.sharedNames
  }

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
        case .symbolicLink: nodes[text] = .symbolicLink(try vault.readLink(at: path))
        default:
          let number = entry.attributes.number
          var attributes: [String: [UInt8]] = [:]
          for name in try vault.extendedAttributeNames(of: number) {
            attributes[String(decoding: name, as: UTF8.self)] = try vault.extendedAttribute(name, of: number)
          }
          nodes[text] = .file(
            try vault.wholeContents(of: path), permissions: entry.attributes.permissions, attributes: attributes)
          identities[text] = entry.attributes.number.value
        }
      }
    }
    lastIdentity = identities.values.max() ?? 0
    for name in try vault.settingNames(prefix: "") { settings[name] = try vault.setting(name) }
  }

  /// What differs, for the message of a test that fails.
  public func difference(from other: ExpectedVault) -> String {
    let paths = Set(nodes.keys).union(other.nodes.keys).filter { nodes[$0] != other.nodes[$0] }.sorted()
    let names = Set(settings.keys).union(other.settings.keys).filter { settings[$0] != other.settings[$0] }.sorted()
    func text(_ node: Node?) -> String {
      switch node {
      case .folder: "folder"
      case .file(let bytes, let permissions, let attributes): "\(bytes.count) bytes \(permissions) \(attributes.keys)"
      case .symbolicLink: "link"
      case nil: "absent"
      }
    }
    let shared = sharedNames == other.sharedNames ? [] : ["names of one file: \(sharedNames), not \(other.sharedNames)"]
    return
      (shared + paths.map { "\($0): \(text(nodes[$0])), not \(text(other.nodes[$0]))" } + names.map { "setting \($0)" })
      .joined(separator: "; ")
  }
}

extension Vault {
  /// The whole content of a file.
  public func wholeContents(of path: VaultPath) throws -> [UInt8] { try snapshot(of: path).wholeContents() }
}

extension FileSnapshot {
  func wholeContents() throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xaa, count: Int(byteCount) + 1)
    let count = try bytes.withUnsafeMutableBytes { try read(at: 0, into: $0) }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
