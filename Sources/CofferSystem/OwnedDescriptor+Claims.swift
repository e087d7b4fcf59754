#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Bytes of a file, there or not, that a process claims: others may ask whose they are, whatever becomes of it (record locks, fcntl(2)).
extension OwnedDescriptor {
  /// Claims a byte for this process, until it has ended; `false` where another has. The process gives up all its claims where it closes any
  /// descriptor of the file.
  ///
  /// The descriptor must be open for writing.
  public func claim(_ byte: UInt64) throws(SystemError) -> Bool {
    var claim = try Self.claim(byte, F_WRLCK)
    if fcntl(number, F_SETLK, &claim) == 0 { return true }
    if errno == EACCES || errno == EAGAIN { return false }
    throw .last("fcntl")
  }

  /// Gives up what this process claims of a byte.
  public func disclaim(_ byte: UInt64) throws(SystemError) {
    var claim = try Self.claim(byte, F_UNLCK)
    guard fcntl(number, F_SETLK, &claim) == 0 else { throw .last("fcntl") }
  }

  /// The process that claims a byte, other than this one; nil where none does that this name space of processes sees.
  public func claimant(of byte: UInt64) throws(SystemError) -> Int32? {
    var claim = try Self.claim(byte, F_WRLCK)
    guard fcntl(number, F_GETLK, &claim) == 0 else { throw .last("fcntl") }
    return Int32(claim.l_type) == Int32(F_UNLCK) || claim.l_pid <= 0 ? nil : claim.l_pid
  }

  private static func claim<Kind: BinaryInteger>(_ byte: UInt64, _ kind: Kind) throws(SystemError) -> flock {
    guard let start = off_t(exactly: byte) else { throw SystemError(code: EOVERFLOW, call: "fcntl") }
    var claim = flock()
    claim.l_type = Int16(kind)
    claim.l_whence = Int16(SEEK_SET)
    claim.l_start = start
    claim.l_len = 1
    return claim
  }
}
