import Glibc

/// Everything that a folder holds, as system calls tell it.
struct Tree: Equatable {
  struct Node: Hashable {
    var stat: NodeStat
    /// The first path of the same node.
    var same: String
    var content: [UInt8] = []
    var target = ""
    var attributes: [String: [UInt8]] = [:]
  }

  private(set) var nodes: [String: Node] = [:]

  /// - Parameter acrossGrounds: leaves out what two file systems may have otherwise: inode numbers, times, and the size
  ///   of folders.
  init(_ path: String, acrossGrounds: Bool = false) throws {
    var first: [UInt: String] = [:]
    try add(path, "", acrossGrounds, &first)
  }

  private mutating func add(_ root: String, _ name: String, _ acrossGrounds: Bool, _ first: inout [UInt: String]) throws
  {
    let path = root + name
    var stat = try Kernel.stat(path)
    let same = first[stat.number] ?? name
    first[stat.number] = same
    let kind = stat.kind
    // Reading may change the first, writing back the second, and a new mount the third.
    stat.accessed = Moment(0, 0)
    stat.blocks = 0
    stat.device = 0
    if acrossGrounds {
      (stat.modified, stat.changed) = (Moment(0, 0), Moment(0, 0))
      stat.number = 0
      if kind != S_IFREG && kind != S_IFLNK { stat.size = 0 }
    }
    var node = Node(stat: stat, same: same)
    for attribute in try Kernel.attributes(path) {
      node.attributes[attribute] = try Kernel.attribute(path, attribute)
    }
    // One that is larger has holes, and is held to its size.
    if kind == S_IFREG, stat.size <= 16 << 20 { node.content = try Kernel.content(path) }
    if kind == S_IFLNK { node.target = try Kernel.readLink(path) }
    nodes[name] = node
    guard kind == S_IFDIR else { return }
    for child in try Kernel.names(path) { try add(root, name + "/" + child, acrossGrounds, &first) }
  }

  /// What a person needs to see where two trees differ.
  func differences(from other: Tree) -> [String] {
    Set(nodes.keys).union(other.nodes.keys).sorted().compactMap { name in
      let (one, two) = (nodes[name], other.nodes[name])
      return one == two ? nil : "\(name): \(Self.describe(one, beside: two)) | \(Self.describe(two, beside: one))"
    }
  }

  private static func describe(_ node: Node?, beside other: Node?) -> String {
    guard let node else { return "absent" }
    guard let other else { return "there" }
    var parts: [String] = []
    for (field, peer) in zip(Mirror(reflecting: node.stat).children, Mirror(reflecting: other.stat).children)
    where "\(field.value)" != "\(peer.value)" {
      parts.append("\(field.label ?? "") \(field.value)")
    }
    if node.same != other.same { parts.append("same as \(node.same)") }
    if node.target != other.target { parts.append("target \(node.target)") }
    if node.attributes != other.attributes { parts.append("attributes \(node.attributes)") }
    if let place = firstDifference(node.content, other.content) {
      parts.append("\(node.content.count) bytes, from \(place): \(node.content[place...].prefix(16))")
    }
    return parts.joined(separator: ", ")
  }
}

/// Where two byte strings begin to differ.
func firstDifference(_ one: [UInt8], _ two: [UInt8]) -> Int? {
  if one == two { return nil }
  return zip(one, two).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(one.count, two.count)
}
