/// Taking bytes away, not only their name.
extension FileSystem {
  /// Writes zeros over a file, makes them durable, and removes its name; `false` where there was none. The directory is
  /// not synced.
  ///
  /// Where the disk writes elsewhere than where it wrote before (flash, snapshots), the old bytes may outlive this.
  @discardableResult
  public func destroy(_ name: String, in directory: OwnedDescriptor) throws(SystemError) -> Bool {
    guard let status = try status(of: name, in: directory) else { return false }
    // What is no file holds nothing of ours, and a link's target is not ours to write to.
    if status.kind == .file {
      try overwriteContents(of: open(name, [.writeOnly, .noFollow, .nonBlocking], in: directory))
    }
    return try unlink(name, in: directory)
  }

  /// Writes zeros over all of an open file and makes them durable.
  public func overwriteContents(of file: OwnedDescriptor) throws(SystemError) {
    let byteCount = try file.status().byteCount
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
