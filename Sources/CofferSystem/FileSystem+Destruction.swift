/// Taking bytes away, not only their name.
extension FileSystem {
  /// Writes zeros over a file, makes them durable, and removes its name; `false` where there was none. The directory is
  /// not synced.
  ///
  /// Where the disk writes elsewhere than where it wrote before (flash, snapshots), or has no room for zeros, the old bytes
  /// may outlive this.
  /// - Parameter limit: the bytes that such a file can have. No more are written over, however long somebody made it.
  @discardableResult
  public func destroy(_ name: String, in directory: OwnedDescriptor, limit: Int) throws(SystemError) -> Bool {
    // What is no file holds nothing of ours, and a link's target is not ours to write to.
    if try status(of: name, in: directory)?.kind == .file {
      let overwritten = Result { () throws(SystemError) in
        try overwriteContents(of: openToOverwrite(name, in: directory), limit: limit)
      }
      // A disk that writes elsewhere, or has holes to fill, may have no room for zeros. The name goes all the same.
      if case .failure(let error) = overwritten, !error.isFull { throw error }
    }
    return try removeAny(name, in: directory)
  }

  /// Its owner may have had nobody write to it, not even themselves.
  private func openToOverwrite(_ name: String, in directory: OwnedDescriptor) throws(SystemError) -> OwnedDescriptor {
    do {
      return try open(name, [.writeOnly, .noFollow, .nonBlocking], in: directory)
    } catch {
      guard error.isDenied else { throw error }
      try open(name, [.readOnly, .noFollow, .nonBlocking], in: directory).setPermissions(0o600)
      return try open(name, [.writeOnly, .noFollow, .nonBlocking], in: directory)
    }
  }

  /// Writes zeros over an open file, up to `limit` bytes of it, and makes them durable.
  public func overwriteContents(of file: OwnedDescriptor, limit: Int) throws(SystemError) {
    let byteCount = min(try file.status().byteCount, UInt64(limit))
    let zeros = [UInt8](repeating: 0, count: Int(min(byteCount, 64 << 10)))
    var offset: UInt64 = 0
    while offset < byteCount {
      let count = Int(min(byteCount - offset, UInt64(zeros.count)))
      try file.writeAll(zeros[..<count], at: offset)
      offset += UInt64(count)
    }
    try file.sync()
  }
}

extension OwnedDescriptor {
  fileprivate func writeAll(_ bytes: ArraySlice<UInt8>, at offset: UInt64) throws(SystemError) {
    try bytes.withUnsafeBytes { raw in Result { () throws(SystemError) in try writeAll(raw, at: offset) } }.get()
  }
}
