import CofferTestSupport
import Foundation

/// A disk behind a cache that loses power: what was synced is there, and of everything else any part may be.
///
/// No order is assumed beyond what POSIX promises of `fsync`: a sector of a file holds what it held at the last sync, or
/// after any later write; a file has the length of the last sync, or any later one; a name in a folder is as it was at
/// the folder's last sync, or as after any later change. A rename is one change. A sync of a file says nothing of its
/// name.
struct CrashDisk {
  static let sectorSize = 512

  struct File {
    var durable = Data()
    var current = Data()
    /// Not synced yet.
    var pending: [Change] = []
  }

  enum Change {
    case write(offset: Int, bytes: [UInt8])
    case truncate(Int)
    case punch(Range<Int>)
  }

  struct Folder {
    var durable: [[UInt8]: NodeID] = [:]
    var current: [[UInt8]: NodeID] = [:]
    var pending: [NameChange] = []
  }

  enum NameChange {
    case link([UInt8], NodeID)
    case unlink([UInt8])
    case rename(old: [UInt8], new: [UInt8], NodeID)
  }

  private(set) var files: [NodeID: File] = [:]
  private(set) var folders: [NodeID: Folder] = [.root: Folder()]

  mutating func apply(_ step: StorageStep) {
    switch step {
    case .create(let node, let isFolder, let name, let parent):
      if isFolder { folders[node] = Folder() } else { files[node] = File() }
      folders[parent]?.change(.link(name, node))
    case .write(let node, let offset, let bytes): files[node]?.change(.write(offset: offset, bytes: bytes))
    case .truncate(let node, let byteCount): files[node]?.change(.truncate(byteCount))
    case .punch(let node, let range): files[node]?.change(.punch(range))
    case .sync(let node):
      files[node]?.sync()
      folders[node]?.sync()
    case .rename(let node, let old, let parent, let new, let target):
      precondition(parent == target, "a rename from one folder to another is not modelled")
      folders[parent]?.change(.rename(old: old, new: new, node))
    case .unlink(_, let name, let parent): folders[parent]?.change(.unlink(name))
    case .commitBegan, .durable, .mayHold, .circumstances, .backupBegan, .backupFinished, .backupEnded: break
    }
  }

  /// Nodes with changes that a crash can lose.
  var unsynced: [NodeID] {
    (files.filter { !$0.value.pending.isEmpty }.map(\.key) + folders.filter { !$0.value.pending.isEmpty }.map(\.key))
      .sorted { $0.value < $1.value }
  }
}

extension CrashDisk.File {
  mutating func change(_ change: CrashDisk.Change) {
    pending.append(change)
    change.apply(to: &current)
  }

  mutating func sync() {
    guard !pending.isEmpty else { return }
    durable = current
    pending = []
  }

  /// What the disk holds where each sector of each change arrived with the chance `arrival`, and of the last change
  /// with the chance `last`; and how many sectors did not arrive, and did.
  func torn(arrival: Double, last: Double, generator: inout SeededGenerator) -> (bytes: Data, lost: Int, kept: Int) {
    if arrival == 1, last == 1 { return (current, 0, 0) }
    if arrival == 0, last == 0 { return (durable, pending.count, 0) }
    var running = durable
    var result = durable
    var lengths = [durable.count]
    var lost = 0
    var kept = 0
    for (position, change) in pending.enumerated() {
      let arrival = position + 1 == pending.count ? last : arrival
      change.apply(to: &running)
      lengths.append(running.count)
      for sector in change.sectors(before: result.count) {
        guard Double.random(in: 0..<1, using: &generator) < arrival else {
          lost += 1
          continue
        }
        kept += 1
        let start = sector * CrashDisk.sectorSize
        // Behind the end of a file that was cut there is nothing to arrive.
        guard start < running.count else { continue }
        let range = start..<min(start + CrashDisk.sectorSize, running.count)
        if result.count < range.upperBound { result.append(Data(count: range.upperBound - result.count)) }
        result.replaceSubrange(range, with: running[range])
      }
    }
    // Where bytes arrive whose length does not, nothing is seen of them.
    let length = generator.once(in: 2) ? current.count : (lengths.randomElement(using: &generator) ?? 0)
    if result.count > length {
      result.removeSubrange(length...)
    } else {
      result.append(Data(count: length - result.count))
    }
    return (result, lost, kept)
  }
}

extension CrashDisk.Change {
  func apply(to bytes: inout Data) {
    switch self {
    case .write(let offset, let new):
      if bytes.count < offset + new.count { bytes.append(Data(count: offset + new.count - bytes.count)) }
      bytes.replaceSubrange(offset..<(offset + new.count), with: new)
    case .truncate(let count):
      if bytes.count > count { bytes.removeSubrange(count...) } else { bytes.append(Data(count: count - bytes.count)) }
    case .punch(let range):
      let inside = range.clamped(to: 0..<bytes.count)
      bytes.resetBytes(in: inside)
    }
  }

  /// The sectors that it changes.
  func sectors(before count: Int) -> Range<Int> {
    let range =
      switch self {
      case .write(let offset, let bytes): offset..<(offset + bytes.count)
      case .truncate(let length): min(length, count)..<max(length, count)
      case .punch(let range): range.clamped(to: 0..<count)
      }
    if range.isEmpty { return 0..<0 }
    return (range.lowerBound / CrashDisk.sectorSize)..<((range.upperBound - 1) / CrashDisk.sectorSize + 1)
  }
}

extension CrashDisk.Folder {
  mutating func change(_ change: CrashDisk.NameChange) {
    pending.append(change)
    change.apply(to: &current)
  }

  mutating func sync() {
    durable = current
    pending = []
  }

  func torn(arrival: Double, last: Double, generator: inout SeededGenerator) -> (names: [[UInt8]: NodeID], lost: Int) {
    var names = durable
    var lost = 0
    for (position, change) in pending.enumerated() {
      let arrival = position + 1 == pending.count ? last : arrival
      if Double.random(in: 0..<1, using: &generator) < arrival { change.apply(to: &names) } else { lost += 1 }
    }
    return (names, lost)
  }
}

extension CrashDisk.NameChange {
  func apply(to names: inout [[UInt8]: NodeID]) {
    switch self {
    case .link(let name, let node): names[name] = node
    case .unlink(let name): names[name] = nil
    case .rename(let old, let new, let node):
      if names[old] == node { names[old] = nil }
      names[new] = node
    }
  }
}
