internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// The record of a file or folder.
struct Inode: Sendable {
  enum Content: Sendable {
    /// A folder: how many names it holds, and the folder that holds it.
    case directory(entryCount: UInt64, parent: InodeNumber)
    /// A small file: its bytes sealed under its own key.
    case inline([UInt8])
    /// A larger file: the object that holds its blocks.
    case object(ObjectReference)
  }

  let number: InodeNumber
  var protection: ProtectionClass
  /// The twelve permission bits.
  var permissions: UInt16
  var modified: Timestamp
  var changed: Timestamp
  var created: Timestamp
  /// Rises with every change of the content.
  var revision: UInt64
  /// Bytes of content; 0 for a folder.
  var byteCount: UInt64
  /// The file's key wrapped for its class; empty for a folder.
  var wrappedKey: [UInt8]
  var keyCommitment: [UInt8]
  var content: Content

  var kind: NodeKind { if case .directory = content { .directory } else { .file } }

  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.write(number.value)
    writer.write(protection.rawValue)
    writer.write(permissions)
    for time in [modified, changed, created] {
      writer.write(time.seconds)
      writer.write(time.nanoseconds)
    }
    writer.write(revision)
    writer.write(byteCount)
    writer.write(counted: wrappedKey)
    writer.write(counted: keyCommitment)
    switch content {
    case .directory(let entryCount, let parent):
      writer.write(UInt8(1))
      writer.write(entryCount)
      writer.write(parent.value)
    case .inline(let sealed):
      writer.write(UInt8(2))
      writer.write(counted: sealed)
    case .object(let object):
      writer.write(UInt8(3))
      writer.write(object.number)
      writer.write(object.blockSizeExponent)
    }
    return Padding.pad(writer.bytes)
  }

  init(decoding bytes: [UInt8], expecting expected: InodeNumber) throws {
    var reader = ByteReader(try Padding.unpad(bytes))
    number = InodeNumber(value: try reader.read())
    guard number == expected, let protection = ProtectionClass(rawValue: try reader.read()) else {
      throw MalformedBytes()
    }
    self.protection = protection
    permissions = try reader.read()
    func time() throws -> Timestamp { Timestamp(seconds: try reader.read(), nanoseconds: try reader.read()) }
    modified = try time()
    changed = try time()
    created = try time()
    revision = try reader.read()
    byteCount = try reader.read()
    wrappedKey = try reader.read(countedUpTo: 128)
    keyCommitment = try reader.read(countedUpTo: 32)
    switch try reader.read(UInt8.self) {
    case 1: content = .directory(entryCount: try reader.read(), parent: InodeNumber(value: try reader.read()))
    case 2: content = .inline(try reader.read(countedUpTo: VaultFormat.inlineLimit + Sealing.overhead + 1024))
    case 3:
      content = .object(ObjectReference(number: try reader.read(), blockSizeExponent: try reader.read()))
    default: throw MalformedBytes()
    }
    try reader.finish()
    if case .inline = content, byteCount > UInt64(VaultFormat.inlineLimit) { throw MalformedBytes() }
    if case .object(let object) = content {
      guard VaultFormat.blockSizeExponents.contains(object.blockSizeExponent), byteCount <= 1 << 62 else {
        throw MalformedBytes()
      }
    }
  }

  init(
    number: InodeNumber, protection: ProtectionClass, permissions: UInt16, modified: Timestamp, now: Timestamp,
    byteCount: UInt64 = 0, wrappedKey: [UInt8] = [], keyCommitment: [UInt8] = [], content: Content
  ) {
    self.number = number
    self.protection = protection
    self.permissions = permissions
    self.modified = modified
    changed = now
    created = now
    revision = 1
    self.byteCount = byteCount
    self.wrappedKey = wrappedKey
    self.keyCommitment = keyCommitment
    self.content = content
  }
}

extension FileAttributes {
  init(_ inode: Inode) {
    self.init(
      number: inode.number.value, kind: inode.kind, byteCount: inode.byteCount, permissions: inode.permissions,
      modified: inode.modified, created: inode.created, protection: inode.protection, revision: inode.revision)
  }
}

/// Names the object of a file, and how it is cut into blocks.
struct ObjectReference: Equatable, Sendable {
  let number: UInt64
  /// log2 of the block size in bytes.
  let blockSizeExponent: UInt8

  var blockSize: Int { 1 << blockSizeExponent }

  func blockCount(of byteCount: UInt64) -> UInt64 {
    (byteCount + UInt64(blockSize) - 1) >> blockSizeExponent
  }
}

/// A file or folder to be taken apart once nothing needs it: written in the commit that unlinks it, removed after its
/// object is gone, so that neither a crash nor an open needs a scan.
struct PendingRemoval: Sendable {
  let inode: InodeNumber
  let object: ObjectReference?
  /// Map pages that may have rows.
  let pageCount: UInt64

  func encoded() -> [UInt8] {
    var writer = ByteWriter()
    writer.write(inode.value)
    writer.write(UInt8(object == nil ? 0 : 1))
    writer.write(object?.number ?? 0)
    writer.write(object?.blockSizeExponent ?? 0)
    writer.write(pageCount)
    return Padding.pad(writer.bytes)
  }

  init(decoding bytes: [UInt8]) throws {
    var reader = ByteReader(try Padding.unpad(bytes))
    inode = InodeNumber(value: try reader.read())
    let hasObject = try reader.read(UInt8.self) == 1
    let reference = ObjectReference(number: try reader.read(), blockSizeExponent: try reader.read())
    object = hasObject ? reference : nil
    pageCount = try reader.read()
    try reader.finish()
  }

  init(inode: InodeNumber, object: ObjectReference?, pageCount: UInt64) {
    self.inode = inode
    self.object = object
    self.pageCount = pageCount
  }
}
