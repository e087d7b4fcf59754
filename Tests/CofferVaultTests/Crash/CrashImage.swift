import CofferSystem
import CofferTestSupport
import Foundation

/// What a disk holds after one crash: one of the many things that it may hold.
struct CrashImage {
  /// How much of what was not synced arrived.
  enum Fate {
    /// The cut is between two calls, and everything before it is there.
    case everything
    /// As `everything`, but of the last change only some sectors.
    case lastTorn(NodeID)
    case nothing
    /// All but what belongs to one file or folder.
    case allBut(NodeID)
    /// Nothing but what belongs to one file or folder.
    case only(NodeID)
    /// Every sector and every name by itself.
    case some(Double)

    func arrival(_ node: NodeID) -> Double {
      switch self {
      case .everything, .lastTorn: 1
      case .nothing: 0
      case .allBut(let lost): node == lost ? 0 : 1
      case .only(let kept): node == kept ? 1 : 0
      case .some(let chance): chance
      }
    }

    func lastArrival(_ node: NodeID) -> Double {
      if case .lastTorn(node) = self { return 0.5 }
      return arrival(node)
    }
  }

  private(set) var folders: [String] = []
  private(set) var files: [(path: String, bytes: Data)] = []
  /// Writes and names that were not synced and did not arrive.
  private(set) var lostCount = 0
  /// Files of which a part of what was not synced arrived.
  private(set) var torn: Set<NodeID> = []

  init(of disk: CrashDisk, fate: Fate, generator: inout SeededGenerator) {
    var queue = [(NodeID.root, "")]
    while let (node, path) = queue.popLast() {
      if let folder = disk.folders[node] {
        if !path.isEmpty { folders.append(path) }
        let (names, lost) = folder.torn(
          arrival: fate.arrival(node), last: fate.lastArrival(node), generator: &generator)
        lostCount += lost
        // In a fixed order, so that a seed is all that a failure needs.
        for (name, child) in names.sorted(by: { $0.value.value < $1.value.value }) {
          queue.append((child, (path.isEmpty ? "" : path + "/") + String(decoding: name, as: UTF8.self)))
        }
      } else if let file = disk.files[node] {
        let (bytes, lost, kept) = file.torn(
          arrival: fate.arrival(node), last: fate.lastArrival(node), generator: &generator)
        lostCount += lost
        if lost > 0, kept > 0 { torn.insert(node) }
        files.append((path, bytes))
      }
    }
  }

  /// Makes the folder `path` hold the image and nothing else.
  func write(to path: String) throws {
    let files = FileSystem()
    if try files.status(of: path) != nil { try FileManager.default.removeItem(atPath: path) }
    try files.makeDirectory(path)
    for folder in folders { try files.makeDirectory(path + "/" + folder) }
    for (name, bytes) in self.files {
      let file = try files.open(path + "/" + name, [.writeOnly, .create, .truncate])
      try bytes.withUnsafeBytes { raw in Result { () throws(SystemError) in try file.writeAll(raw) } }.get()
    }
  }
}
