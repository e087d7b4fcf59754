internal import CofferCrypto
internal import CofferFiles
internal import CofferSystem

/// The record of a file, folder, link or special file.
struct Inode: Sendable {
  enum Content: Sendable, Equatable {
    case directory(FolderContent)
    /// A small file: its bytes sealed under its own key.
    case inline([UInt8])
    /// A larger file: the object that holds its blocks, and how far its slots reach.
    case object(ObjectReference, SlotUse)
    /// A symbolic link and the bytes that it points with.
    case symbolicLink(target: [UInt8])
    /// A fifo or socket has none.
    case special

    /// Bytes whose count is not the format's.
    fileprivate var byteCount: Int {
      switch self {
      case .inline(let sealed): sealed.count
      case .symbolicLink(let target): target.count
      case .directory, .object, .special: 0
      }
    }
  }

  let number: InodeNumber
  let kind: NodeKind
  var protection: ProtectionClass
  /// The twelve permission bits.
  var permissions: UInt16
  var owner: FileOwner
  /// Names that lead here. 1 for a folder; 0 for what has none (``Orphans``), of which the record may still say how many it had.
  var linkCount: UInt32
  var accessed: Timestamp
  var modified: Timestamp
  var changed: Timestamp
  var created: Timestamp
  /// Rises with every change of the content.
  var revision: UInt64
  /// Bytes of content; 0 for anything but a file.
  var byteCount: UInt64
  /// Extended attributes, each in a record of its own.
  var attributeCount: UInt32
  /// The file's key wrapped for its class; empty for anything but a file.
  var wrappedKey: [UInt8]
  var keyCommitment: [UInt8]
  /// A change of the key that is not finished; see ``Rekeying``.
  var rekeying: Rekeying?
  var content: Content

  /// Room for everything but the content's bytes.
  private static let otherByteCount = 320

  func encoded() -> [UInt8] {
    var writer = ByteWriter(capacity: Self.otherByteCount + content.byteCount)
    writer.write(number.value)
    writer.write(kind.rawValue)
    writer.write(protection.rawValue)
    writer.write(permissions)
    writer.write(owner.user)
    writer.write(owner.group)
    writer.write(linkCount)
    for time in [accessed, modified, changed, created] {
      writer.write(time.seconds)
      writer.write(time.nanoseconds)
    }
    writer.write(revision)
    writer.write(byteCount)
    writer.write(attributeCount)
    writer.write(counted: wrappedKey)
    writer.write(counted: keyCommitment)
    writer.write(UInt8(rekeying == nil ? 0 : 1))
    if let rekeying {
      writer.write(counted: rekeying.wrappedKey)
      writer.write(counted: rekeying.keyCommitment)
      writer.write(rekeying.nextPage)
    }
    switch content {
    case .directory(let folder):
      writer.write(UInt8(1))
      writer.write(folder.entryCount)
      writer.write(folder.folderCount)
      writer.write(folder.parent.value)
    case .inline(let sealed):
      writer.write(UInt8(2))
      writer.write(counted: sealed)
    case .object(let object, let slots):
      writer.write(UInt8(3))
      writer.write(object.number)
      writer.write(object.blockSizeExponent)
      writer.write(slots.reach)
      writer.write(slots.used)
    case .symbolicLink(let target):
      writer.write(UInt8(4))
      writer.write(counted: target)
    case .special:
      writer.write(UInt8(5))
    }
    return Padding.pad(writer.bytes)
  }

  init(decoding bytes: [UInt8], expecting expected: InodeNumber) throws {
    var reader = ByteReader(try Padding.unpad(bytes))
    number = InodeNumber(value: try reader.read())
    guard number == expected, let kind = NodeKind(rawValue: try reader.read()),
      let protection = ProtectionClass(rawValue: try reader.read())
    else { throw MalformedBytes() }
    self.kind = kind
    self.protection = protection
    permissions = try reader.read()
    owner = FileOwner(user: try reader.read(), group: try reader.read())
    linkCount = try reader.read()
    func time() throws -> Timestamp { Timestamp(seconds: try reader.read(), nanoseconds: try reader.read()) }
    accessed = try time()
    modified = try time()
    changed = try time()
    created = try time()
    revision = try reader.read()
    byteCount = try reader.read()
    attributeCount = try reader.read()
    wrappedKey = try reader.read(countedUpTo: 128)
    keyCommitment = try reader.read(countedUpTo: 32)
    switch try reader.read(UInt8.self) {
    case 0: rekeying = nil
    case 1:
      rekeying = Rekeying(
        wrappedKey: try reader.read(countedUpTo: 128), keyCommitment: try reader.read(countedUpTo: 32),
        nextPage: try reader.read())
    default: throw MalformedBytes()
    }
    switch try reader.read(UInt8.self) {
    case 1:
      content = .directory(
        FolderContent(
          entryCount: try reader.read(), folderCount: try reader.read(), parent: InodeNumber(value: try reader.read())))
    case 2: content = .inline(try reader.read(countedUpTo: VaultFormat.inlineLimit + Sealing.overhead + 1024))
    case 3:
      content = .object(
        ObjectReference(number: try reader.read(), blockSizeExponent: try reader.read()),
        SlotUse(reach: try reader.read(), used: try reader.read()))
    case 4: content = .symbolicLink(target: try reader.read(countedUpTo: VaultFormat.linkTargetLimit))
    case 5: content = .special
    default: throw MalformedBytes()
    }
    try reader.finish()
    if case .directory(let folder) = content, folder.folderCount > folder.entryCount { throw MalformedBytes() }
    if rekeying != nil {
      guard case .object = content else { throw MalformedBytes() }
    }
    guard content.fits(kind), byteCount <= VaultFormat.fileSizeLimit else { throw MalformedBytes() }
    if case .inline = content, byteCount > UInt64(VaultFormat.inlineLimit) { throw MalformedBytes() }
    if case .object(let object, let slots) = content {
      guard VaultFormat.blockSizeExponents.contains(object.blockSizeExponent), slots.used <= slots.reach,
        slots.reach <= VaultFormat.slotLimit
      else { throw MalformedBytes() }
    }
  }

  init(
    number: InodeNumber, kind: NodeKind, protection: ProtectionClass, permissions: UInt16, owner: FileOwner,
    modified: Timestamp, now: Timestamp, byteCount: UInt64 = 0, wrappedKey: [UInt8] = [], keyCommitment: [UInt8] = [],
    content: Content
  ) {
    self.number = number
    self.kind = kind
    self.protection = protection
    self.permissions = permissions
    self.owner = owner
    linkCount = 1
    accessed = modified
    self.modified = modified
    changed = now
    created = now
    revision = 1
    self.byteCount = byteCount
    attributeCount = 0
    self.wrappedKey = wrappedKey
    self.keyCommitment = keyCommitment
    self.content = content
  }
}

/// A file's earlier key, while its blocks are being sealed anew under the present one: map pages from `nextPage` on are
/// still under the earlier.
struct Rekeying: Equatable, Sendable {
  /// Wrapped for the file's present class, so that the record itself never says more than that class allows.
  let wrappedKey: [UInt8]
  let keyCommitment: [UInt8]
  var nextPage: UInt64
}

/// What a folder holds.
struct FolderContent: Equatable, Sendable {
  /// Names in it.
  var entryCount: UInt64 = 0
  /// Those of them that name folders.
  var folderCount: UInt64 = 0
  /// The folder that holds it; the root folder's own number in the root folder.
  var parent: InodeNumber
}

/// How far an object's slots reach.
struct SlotUse: Equatable, Sendable {
  /// Every slot that a block lies in is below this one.
  var reach: UInt64
  /// Slots that a block lies in.
  var used: UInt64
}

extension Inode.Content {
  fileprivate func fits(_ kind: NodeKind) -> Bool {
    switch (kind, self) {
    case (.directory, .directory), (.file, .inline), (.file, .object), (.symbolicLink, .symbolicLink),
      (.fifo, .special),
      (.socket, .special):
      true
    default: false
    }
  }
}

extension FileAttributes {
  init(_ inode: Inode) {
    var byteCount = inode.byteCount
    var storedByteCount: UInt64 = 0
    var linkCount = inode.linkCount
    switch inode.content {
    case .directory(let folder): if linkCount > 0 { linkCount = UInt32(clamping: 2 &+ folder.folderCount) }
    case .inline: storedByteCount = byteCount
    case .object(let object, let slots): storedByteCount = slots.used << object.blockSizeExponent
    case .symbolicLink(let target): byteCount = UInt64(target.count)
    case .special: break
    }
    self.init(
      number: inode.number, kind: inode.kind, byteCount: byteCount, storedByteCount: storedByteCount,
      permissions: inode.permissions, owner: inode.owner, linkCount: linkCount, accessed: inode.accessed,
      modified: inode.modified, changed: inode.changed, created: inode.created, protection: inode.protection,
      revision: inode.revision)
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
