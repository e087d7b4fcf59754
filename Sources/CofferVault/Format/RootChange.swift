internal import CofferSystem

/// What a commit of the journal changes of the root: all that ``RootRecord`` has, but for the tags of the pages that it seals, at
/// whose ends they are, and the next salt, which such a commit never changes.
struct RootChange: Equatable, Sendable {
  let generation: UInt64
  let commit: [UInt8]
  let branch: [UInt8]
  let nextInode: UInt64
  let nextObject: UInt64
  /// Beside those that the root held before; in their place where the commit seals pages.
  let buckets: [Int: Bucket]

  /// Bytes that it has with `count` buckets.
  static func byteCount(bucketCount count: Int) -> Int {
    3 * 8 + RootRecord.commitByteCount + RootRecord.branchByteCount + 1 + count * Bucket.numberedByteCount
  }

  /// - Parameters:
  ///   - root: as the commit leaves it.
  ///   - buckets: at most ``RootRecord/bucketLimit``.
  init(_ root: RootRecord, buckets: [Int: Bucket]) {
    (generation, commit, branch) = (root.generation, root.commit, root.branch)
    (nextInode, nextObject) = (root.nextInode, root.nextObject)
    self.buckets = buckets
  }

  func encode(to writer: inout ByteWriter) {
    writer.write(generation)
    writer.write(fixed: commit)
    writer.write(fixed: branch)
    writer.write(nextInode)
    writer.write(nextObject)
    Bucket.encode(buckets, to: &writer)
  }
}

extension RootChange {
  init(from reader: inout ByteReader) throws(MalformedBytes) {
    generation = try reader.read()
    commit = try reader.read(fixed: RootRecord.commitByteCount)
    branch = try reader.read(fixed: RootRecord.branchByteCount)
    nextInode = try reader.read()
    nextObject = try reader.read()
    buckets = try Bucket.decodeNumbered(from: &reader, limit: RootRecord.bucketLimit)
  }
}
