/// A call that changes what is stored, or makes it durable, as a fault plan learns of it.
///
/// Descriptors are named by their numbers and names are relative to a directory's descriptor where there is one, exactly
/// as the call has them. Calls that failed are not told.
public enum StorageOperation {
  /// A file or directory was opened, and made where it was not there.
  case open(CInt, name: [UInt8], in: CInt?, mode: FileSystem.OpenMode)
  /// A file without a name was opened in a directory.
  case openUnnamed(CInt, in: CInt)
  case write(CInt, at: UInt64, bytes: UnsafeRawBufferPointer)
  /// At the descriptor's position, which moved on.
  case append(CInt, bytes: UnsafeRawBufferPointer)
  case truncate(CInt, byteCount: UInt64)
  /// The bytes of a range were given back, and read as zeros.
  case punch(CInt, range: Range<UInt64>)
  /// Told before the call: what was written after it began need not be durable when it ends.
  case syncData(CInt)
  /// Likewise, of a file with its attributes or of a directory's names.
  case sync(CInt)
  case makeDirectory(name: [UInt8], in: CInt?)
  case rename(old: [UInt8], in: CInt?, new: [UInt8], to: CInt?)
  /// An open file got a name.
  case link(CInt, name: [UInt8], in: CInt)
  case unlink(name: [UInt8], in: CInt?)
  case removeDirectory(name: [UInt8], in: CInt?)
}

extension FaultPlan {
  public func observe(_ operation: StorageOperation) {}
}
