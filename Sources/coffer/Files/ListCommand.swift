internal import ArgumentParser
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Foundation

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "Lists a folder of the vault.", discussion: "Example:\n  coffer ls -l /reports")

  @OptionGroup var options: GlobalOptions

  @Flag(
    name: .customShort("l"),
    help: "Kind, permissions, names, owner, protection class, size, time of change, and where links point.")
  var long = false

  @Flag(name: .customShort("R"), help: "Folders with everything in them.")
  var recursive = false

  @Argument(help: ArgumentHelp("A file or folder in the vault.", valueName: "path"))
  var path = "/"

  func run() throws {
    try options.withContainer { container in
      let path = try VaultPath(argument: self.path)
      let attributes = try PathText.naming(path) { try container.attributes(at: path) }
      var items: [Item] = []
      if attributes.kind != .directory, let name = path.lastName {
        items = [try Item(path: name, attributes: attributes, at: path, container)]
      } else {
        try collect(path, prefix: [], container, into: &items)
      }
      if options.json { return try Output.json(items.map(ItemDescription.init)) }
      for item in items {
        let slash = item.attributes.kind == .directory ? "/" : ""
        Output.name(long ? item.prefix : "", item.path + (long ? item.arrow : []), suffix: slash)
      }
    }
  }

  private func collect(
    _ path: VaultPath, prefix: [UInt8], _ container: Container, into items: inout [Item]
  ) throws {
    let entries = try PathText.naming(path) { try container.list(path) }
      .sorted { $0.name.lexicographicallyPrecedes($1.name) }
    for entry in entries {
      let inner = try path.appending(entry.name)
      items.append(try Item(path: prefix + entry.name, attributes: entry.attributes, at: inner, container))
      if recursive, entry.attributes.kind == .directory {
        try collect(
          inner, prefix: prefix + entry.name + [UInt8(ascii: "/")], container, into: &items)
      }
    }
  }
}

struct StatCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat", abstract: "Shows what a file or folder of the vault is.",
    discussion: "Example:\n  coffer stat /report.pdf")

  @OptionGroup var options: GlobalOptions

  @Argument(help: ArgumentHelp("A file or folder in the vault.", valueName: "path"))
  var path: String

  func run() throws {
    try options.withContainer { container in
      let path = try VaultPath(argument: self.path)
      let attributes = try PathText.naming(path) { try container.attributes(at: path) }
      let item = try Item(path: path.lastName ?? [UInt8(ascii: "/")], attributes: attributes, at: path, container)
      let description = ItemDescription(item)
      if options.json { return try Output.json(description) }
      Output.name("name        ", item.path)
      Output.line("kind        \(description.kind)")
      if let target = item.target { Output.name("target      ", target) }
      Output.line("size        \(description.size)\(item.isSparse ? ", stored \(description.stored)" : "")")
      Output.line("permissions \(description.permissions)")
      Output.line("owner       \(description.user):\(description.group)")
      Output.line("links       \(description.links)")
      for (name, time) in [
        ("modified", item.attributes.modified), ("changed ", item.attributes.changed),
        ("accessed", item.attributes.accessed), ("created ", item.attributes.created),
      ] {
        Output.line("\(name)    \(time.text())")
      }
      Output.line("protection  \(description.protection)")
    }
  }
}

extension Timestamp {
  /// In UTC, as ISO 8601 has it.
  fileprivate func text(nanoseconds isExact: Bool = false) -> String {
    let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
    let digits = String(nanoseconds)
    return isExact
      ? text.dropLast() + "." + String(repeating: "0", count: max(0, 9 - digits.count)) + digits + "Z" : text
  }
}

/// One line of a listing.
struct Item {
  let path: [UInt8]
  let attributes: FileAttributes
  /// Where a symbolic link points.
  let target: [UInt8]?

  init(path: [UInt8], attributes: FileAttributes, at place: VaultPath, _ container: Container) throws {
    self.path = path
    self.attributes = attributes
    target = attributes.kind == .symbolicLink ? try container.readLink(at: place) : nil
  }

  /// Whether the content has holes.
  var isSparse: Bool { attributes.kind == .file && attributes.storedByteCount < attributes.byteCount }

  var arrow: [UInt8] { target.map { Array(" -> ".utf8) + $0 } ?? [] }
}

/// A listed item in text.
struct ItemDescription: Encodable {
  let name: String
  /// The name's bytes in hexadecimal digits, where they are not UTF-8.
  let nameBytes: String?
  let kind: String
  /// Where a symbolic link points, and the bytes in hexadecimal digits where they are not UTF-8.
  let target: String?
  let targetBytes: String?
  let size: UInt64
  /// Bytes that the content takes.
  let stored: UInt64
  let permissions: String
  let user: UInt32
  let group: UInt32
  /// The same for all names of one file.
  let number: UInt64
  let links: UInt32
  let modified: String
  let changed: String
  let accessed: String
  let created: String
  let protection: String

  init(_ item: Item) {
    name = String(decoding: item.path, as: UTF8.self)
    nameBytes = Array(name.utf8) == item.path ? nil : item.path.hexadecimal
    kind =
      switch item.attributes.kind {
      case .file: "file"
      case .directory: "folder"
      case .symbolicLink: "link"
      case .fifo: "fifo"
      case .socket: "socket"
      }
    let target = item.target.map { String(decoding: $0, as: UTF8.self) }
    self.target = target
    targetBytes = item.target.flatMap { bytes in target.map { Array($0.utf8) } == bytes ? nil : bytes.hexadecimal }
    user = item.attributes.owner.user
    group = item.attributes.owner.group
    number = item.attributes.number.value
    links = item.attributes.linkCount
    size = item.attributes.byteCount
    stored = item.attributes.storedByteCount
    permissions = "0" + String(item.attributes.permissions, radix: 8)
    modified = item.attributes.modified.text(nanoseconds: true)
    changed = item.attributes.changed.text(nanoseconds: true)
    accessed = item.attributes.accessed.text(nanoseconds: true)
    created = item.attributes.created.text(nanoseconds: true)
    protection = item.attributes.protection.name
  }

}

extension Item {
  /// What stands before the name in a long listing.
  var prefix: String {
    let size = attributes.byteCount
    let padded = String(repeating: " ", count: max(0, 14 - String(size).count)) + String(size)
    let letter =
      switch attributes.kind {
      case .file: "-"
      case .directory: "d"
      case .symbolicLink: "l"
      case .fifo: "p"
      case .socket: "s"
      }
    let hasClass = attributes.kind == .file || attributes.kind == .directory
    let name = hasClass ? attributes.protection.name : "-"
    let protection = name + String(repeating: " ", count: max(0, 20 - name.count))
    return "\(letter) 0\(String(attributes.permissions, radix: 8)) \(attributes.linkCount) \(attributes.owner.user):"
      + "\(attributes.owner.group) \(protection) \(padded) \(attributes.modified.text()) "
  }
}
