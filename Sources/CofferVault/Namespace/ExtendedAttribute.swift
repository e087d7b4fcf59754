internal import CofferFiles
internal import CofferSystem

/// A named value beside a file's content. Those whose names share a row key share its record.
struct ExtendedAttribute: Equatable, Sendable {
  let name: [UInt8]
  var value: [UInt8]

  static func encode(_ attributes: [ExtendedAttribute], of inode: InodeNumber) -> [UInt8] {
    var writer = ByteWriter()
    writer.write(inode.value)
    writer.write(UInt16(attributes.count))
    for attribute in attributes {
      writer.write(counted: attribute.name)
      writer.write(counted: attribute.value)
    }
    return Padding.pad(writer.bytes)
  }

  static func decode(_ bytes: [UInt8], of inode: InodeNumber) throws -> [ExtendedAttribute] {
    var reader = ByteReader(try Padding.unpad(bytes))
    guard try reader.read(UInt64.self) == inode.value else { throw MalformedBytes() }
    let count = try reader.read(UInt16.self)
    guard count > 0, count <= VaultFormat.attributeLimit else { throw MalformedBytes() }
    var attributes: [ExtendedAttribute] = []
    for _ in 0..<count {
      attributes.append(
        ExtendedAttribute(
          name: try reader.read(countedUpTo: VaultFormat.attributeNameLimit),
          value: try reader.read(countedUpTo: VaultFormat.attributeValueLimit)))
    }
    try reader.finish()
    return attributes
  }
}

extension IndexSession {
  func extendedAttributes(at key: RowKey, of inode: InodeNumber) throws -> [ExtendedAttribute] {
    try value(.attribute, key).map { try ExtendedAttribute.decode($0, of: inode) } ?? []
  }

  func store(_ attributes: [ExtendedAttribute], at key: RowKey, of inode: InodeNumber) throws {
    if attributes.isEmpty {
      try remove(.attribute, key)
    } else {
      try set(.attribute, key, ExtendedAttribute.encode(attributes, of: inode))
    }
  }

  func extendedAttributeNames(of inode: InodeNumber) throws -> [[UInt8]] {
    var names: [[UInt8]] = []
    try eachAttributeRow(of: inode) { _, bytes in
      names += try ExtendedAttribute.decode(bytes, of: inode).map(\.name)
    }
    return names
  }

  func removeExtendedAttributes(of inode: InodeNumber) throws {
    try eachAttributeRow(of: inode) { key, _ in try remove(.attribute, key) }
  }

  /// A few rows at a time: each may hold 64 KiB.
  func eachAttributeRow(of inode: InodeNumber, _ body: (RowKey, [UInt8]) throws -> Void) throws {
    var last: RowKey?
    repeat {
      let found = try rows(.attribute, prefix: rowKeys.attributePrefix(inode), after: last, limit: 8)
      for (key, bytes) in found { try body(key, bytes) }
      last = found.last?.0
    } while last != nil
  }
}
