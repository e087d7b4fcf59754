internal import CofferSystem
internal import Foundation
internal import Glibc

/// What is mounted in this process's name space of mounts, as the kernel lists it (proc_pid_mountinfo(5)).
///
/// What is seen at a path is followed from this process's root, as the kernel does, without asking a file system for anything. A place alone
/// does not tell: what is mounted on a folder is hidden with it by what is mounted above that, one that is moved there lies on others that
/// were made later, and what is mounted on the root itself is seen by nobody whose root lies under it.
struct MountTable {
  struct Entry: Equatable {
    /// Of the mount, and of the one that it lies on.
    let id: String
    let parent: String
    /// A name need not be UTF-8, and two that Swift takes for equal texts may be different.
    let place: [UInt8]
    let kind: String
    let device: String
    /// Not only a folder in it.
    let isWhole: Bool
    /// The user who made it, as FUSE has it.
    let user: uid_t?

    var isVault: Bool { kind == "fuse.coffer" }
    var shownPlace: String { String(decoding: place, as: UTF8.self) }
  }

  let entries: [Entry]
  /// The number of the mount that this process's root lies in, which may not be listed.
  private let root: String

  /// As it is now.
  static var present: MountTable {
    MountTable((try? KernelFile.bytes(of: "/proc/self/mountinfo")) ?? [], root: presentRoot)
  }

  /// - Parameters:
  ///   - lines: as the kernel lists them.
  ///   - root: the number of the mount that the root lies in.
  init(_ lines: [UInt8], root: String) {
    entries = lines.split(separator: UInt8(ascii: "\n")).compactMap(Entry.init)
    self.root = root
  }

  /// By proc_pid_fdinfo(5). Empty where it is not told: then nothing is seen anywhere.
  private static var presentRoot: String {
    guard let root = try? FileSystem().open("/", .passage),
      let told = try? KernelFile.text(of: "/proc/self/fdinfo/\(root.number)")
    else { return "" }
    let line = told.split(separator: "\n").first { $0.hasPrefix("mnt_id:") }
    return line.map { $0.dropFirst("mnt_id:".count).trimmingCharacters(in: .whitespaces) } ?? ""
  }

  /// What is mounted at a canonical path and is seen there; nil where nothing is. A mount whose server is gone is seen as any other.
  func seen(at place: [UInt8]) -> Entry? {
    // The mount that the path has led to so far.
    var mount = entries.first { $0.id == root }
    var id = root
    // A number may be there twice, for the list is not read at one moment.
    var rest = entries.count
    for folder in Self.folders(to: place) {
      while rest > 0, let next = entries.first(where: { $0.place == folder && $0.parent == id && $0.id != id }) {
        (mount, id) = (next, next.id)
        rest -= 1
      }
    }
    return mount.flatMap { $0.place == place ? $0 : nil }
  }

  /// What is seen at a canonical path and belongs to a device, and what lies under it there as long as that does too; the uppermost first.
  func layers(of device: String, at place: [UInt8]) -> [Entry] {
    var layers: [Entry] = []
    var next = seen(at: place)
    while let layer = next, layer.device == device, layer.place == place, layers.count < entries.count {
      layers.append(layer)
      next = entries.first { $0.id == layer.parent && $0.id != layer.id }
    }
    return layers
  }

  /// Whatever goes out of the tree with these mounts.
  func below(_ mounts: [Entry]) -> [Entry] {
    var ids = Set(mounts.map(\.id))
    var below: [Entry] = []
    while true {
      let found = entries.filter { !ids.contains($0.id) && ids.contains($0.parent) }
      if found.isEmpty { return below }
      below += found
      ids.formUnion(found.map(\.id))
    }
  }

  /// Each folder on the way from the root, and the path itself.
  private static func folders(to path: [UInt8]) -> [[UInt8]] {
    let slash = UInt8(ascii: "/")
    let ends = path.indices.dropFirst().filter { path[$0] == slash }
    return ends.map { Array(path[..<$0]) } + (path == [slash] ? [] : [path])
  }
}

extension MountTable.Entry {
  fileprivate init?(_ line: ArraySlice<UInt8>) {
    // The first two fields are numbers of the mount and of its parent, the third is the device, the fourth what is shown of it, the
    // fifth the mount point; behind a dash are the type, the source, which may be empty, and the file system's own options.
    let fields = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard fields.count > 4 else { return nil }
    func text(_ index: Int) -> String { String(decoding: fields[index], as: UTF8.self) }
    id = text(0)
    parent = text(1)
    device = text(2)
    isWhole = fields[3].elementsEqual("/".utf8)
    place = Self.unescaped(fields[4])
    // What cannot be read is no vault, but lies where it lies.
    let details = fields[5...].drop { !$0.elementsEqual("-".utf8) }.dropFirst()
      .map { String(decoding: $0, as: UTF8.self) }
    kind = details.first ?? ""
    let user = details.last?.split(separator: ",").first { $0.hasPrefix("user_id=") }
    self.user = user.flatMap { uid_t($0.dropFirst("user_id=".count)) }
  }

  /// Spaces, tabs, line breaks and backslashes stand as three octal digits.
  private static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\\"), rest.count >= 3,
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }
}
