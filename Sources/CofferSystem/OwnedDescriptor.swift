internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A file descriptor with one owner: closed when the last reference goes.
public final class OwnedDescriptor: Sendable {
  /// The descriptor's number, for calls that this room lacks. It stays owned here.
  public let number: CInt
  private let faults: (any FaultPlan)?
  private let isOwned: Bool
  private let patience: Patience?
  /// Whose number this is, where it is another one's.
  private let kept: OwnedDescriptor?

  init(number: CInt, faults: (any FaultPlan)?, isOwned: Bool = true, patience: Patience? = nil) {
    self.number = number
    self.faults = faults
    self.isOwned = isOwned
    self.patience = patience
    kept = nil
  }

  init(keeping other: OwnedDescriptor, _ patience: Patience) {
    number = other.number
    faults = other.faults
    isOwned = false
    self.patience = patience
    kept = other
  }

  /// A descriptor that was given to this program: lent. Nil for a number that is closed, and for what the program opened
  /// itself, which is always closed on exec.
  public static func given(_ number: CInt) -> OwnedDescriptor? {
    guard case let flags = fcntl(number, F_GETFD), flags >= 0, flags & FD_CLOEXEC == 0 else { return nil }
    return OwnedDescriptor(number: number, faults: nil, isOwned: false)
  }

  /// Takes over a descriptor that something else opened.
  public convenience init(adopting number: CInt) { self.init(number: number, faults: nil) }

  /// Numbers from which on descriptors are kept for who wants something of this process: a quarter of all, and no more than many
  /// commands bring with them.
  private static let reserveStart: Int = {
    let limit = coffer_descriptor_limit()
    return limit - min(limit / 4, 4096)
  }()

  /// Throws EMFILE where it is one of the last that the process may have. For what others can make it open any number of; the
  /// lowest free number is given first (open(2)).
  public func requireOutsideReserve() throws(SystemError) {
    if Int(number) >= Self.reserveStart { throw SystemError(code: EMFILE, call: "open") }
  }

  /// Throws EMFILE where no other could be opened outside of those.
  public func requireAnotherOutsideReserve() throws(SystemError) {
    let other = fcntl(number, F_DUPFD_CLOEXEC, 0)
    guard other >= 0 else { throw .last("fcntl") }
    try OwnedDescriptor(adopting: other).requireOutsideReserve()
  }

  /// The process's standard input, output and error: lent, never closed here.
  public static let standardInput = OwnedDescriptor(number: 0, faults: nil, isOwned: false)
  public static let standardOutput = OwnedDescriptor(number: 1, faults: nil, isOwned: false)
  public static let standardError = OwnedDescriptor(number: 2, faults: nil, isOwned: false)

  deinit { if isOwned { close(number) } }

  /// Reads once, at the descriptor's position. 0 at the end.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    try faults?.willCall(.read)
    while true {
      try patience?.waitToRead(number)
      let count = Self.read(number, buffer)
      if count >= 0 { return count }
      if errno == EAGAIN, patience != nil { continue }
      if errno != EINTR { throw .last("read") }
    }
  }

  /// Waits until a read would give bytes or the end; `false` when the time is over.
  public func waitUntilReadable(milliseconds: Int32) throws(SystemError) -> Bool {
    var request = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
    let count = poll(&request, 1, milliseconds)
    if count < 0 && errno != EINTR { throw .last("poll") }
    return count > 0
  }

  /// Reads once; nil where a descriptor that does not block has nothing yet, 0 at the end.
  public func readAvailable(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int? {
    do {
      return try read(into: buffer)
    } catch  where error.code == EAGAIN {
      return nil
    }
  }

  /// Reads until `buffer` is full or the file ends; returns how many bytes.
  public func readFully(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Reads at `offset` until `buffer` is full or the file ends; returns how many bytes.
  public func readFully(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    try faults?.willCall(.read)
    var filled = 0
    while filled < buffer.count {
      guard let position = off_t(exactly: offset + UInt64(filled)) else {
        throw SystemError(code: EINVAL, call: "pread")
      }
      let count = pread(number, buffer.baseAddress! + filled, buffer.count - filled, position)
      if count < 0 {
        if errno == EINTR { continue }
        throw .last("pread")
      }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Writes all of `bytes` at the descriptor's position.
  public func writeAll(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    try faults?.willCall(.write)
    var done = 0
    while done < bytes.count {
      try patience?.waitToWrite(number)
      let portion = UnsafeRawBufferPointer(rebasing: bytes[done...].prefix(patience?.portion ?? .max))
      let count = Self.write(number, portion)
      if count < 0 {
        if errno == EINTR { continue }
        if errno == EAGAIN, patience != nil { continue }
        throw .last("write")
      }
      faults?.observe(.append(number, bytes: UnsafeRawBufferPointer(rebasing: bytes[done..<(done + count)])))
      done += count
    }
  }

  public func writeAll(_ bytes: [UInt8]) throws(SystemError) {
    try bytes.withUnsafeBytes { raw in Result { () throws(SystemError) in try writeAll(raw) } }.get()
  }

  public func writeAll(_ bytes: SecretBytes) throws(SystemError) {
    try bytes.withUnsafeBytes { raw in Result { () throws(SystemError) in try writeAll(raw) } }.get()
  }

  /// Writes all of `bytes` at `offset`.
  public func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(SystemError) {
    try faults?.willCall(.write)
    var done = 0
    while done < bytes.count {
      guard let position = off_t(exactly: offset + UInt64(done)) else { throw SystemError(code: EFBIG, call: "pwrite") }
      let count = pwrite(number, bytes.baseAddress! + done, bytes.count - done, position)
      if count < 0 {
        if errno == EINTR { continue }
        throw .last("pwrite")
      }
      faults?.observe(
        .write(
          number, at: offset + UInt64(done), bytes: UnsafeRawBufferPointer(rebasing: bytes[done..<(done + count)])))
      done += count
    }
  }

  /// Reads the whole file from its start. Throws EFBIG when it holds more than `limit` bytes.
  public func contents(limit: Int) throws(SystemError) -> [UInt8] {
    var result: [UInt8] = []
    while true {
      let start = result.count
      let room = min(64 << 10, limit + 1 - start)
      guard room > 0 else { throw SystemError(code: EFBIG, call: "read") }
      var outcome: Result<Int, SystemError> = .success(0)
      let bytes = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
        outcome = Result { () throws(SystemError) in try read(into: UnsafeMutableRawBufferPointer(buffer)) }
        count = (try? outcome.get()) ?? 0
      }
      _ = try outcome.get()
      result += bytes
      if bytes.isEmpty { return result }
    }
  }

  /// Makes the file's bytes durable.
  public func syncData() throws(SystemError) {
    try faults?.willCall(.sync)
    faults?.observe(.syncData(number))
    _ = try retrying("fdatasync") { coffer_sync_data(number) }
  }

  /// Makes the file's bytes and attributes, or the directory's names, durable.
  public func sync() throws(SystemError) {
    try faults?.willCall(.sync)
    faults?.observe(.sync(number))
    _ = try retrying("fsync") { coffer_sync(number) }
  }

  public func truncate(to byteCount: UInt64) throws(SystemError) {
    try faults?.willCall(.truncate)
    guard let length = off_t(exactly: byteCount) else { throw SystemError(code: EFBIG, call: "ftruncate") }
    _ = try retrying("ftruncate") { ftruncate(number, length) }
    faults?.observe(.truncate(number, byteCount: byteCount))
  }

  /// Gives the space of a part of the file back; it reads as zeros then, and the size stays. `false` where the file
  /// system cannot.
  @discardableResult
  public func punchHole(at offset: UInt64, count: UInt64) throws(SystemError) -> Bool {
    try faults?.willCall(.punchHole)
    guard let offset = Int64(exactly: offset), let count = Int64(exactly: count) else {
      throw SystemError(code: EFBIG, call: "fallocate")
    }
    while true {
      if coffer_punch_hole(number, offset, count) == 0 {
        faults?.observe(.punch(number, range: UInt64(offset)..<UInt64(offset + count)))
        return true
      }
      if errno == EOPNOTSUPP || errno == ENOTSUP || errno == ENOSYS { return false }
      if errno != EINTR { throw .last("fallocate") }
    }
  }

  public func status() throws(SystemError) -> FileStatus {
    var value = stat()
    guard fstat(number, &value) == 0 else { throw .last("fstat") }
    return FileStatus(value)
  }

  public func setPermissions(_ permissions: UInt16) throws(SystemError) {
    guard fchmod(number, mode_t(permissions)) == 0 else { throw .last("fchmod") }
  }

  /// Sets the time of last change; the time of last access stays.
  public func setModified(_ time: Timestamp) throws(SystemError) {
    guard coffer_set_modified(number, time.seconds, Int64(time.nanoseconds)) == 0 else { throw .last("futimens") }
  }

  /// Takes the exclusive advisory lock of the whole file without waiting; `false` when another holds it.
  public func lockExclusively() throws(SystemError) -> Bool {
    if flock(number, LOCK_EX | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw .last("flock")
  }

  /// Takes the advisory lock of the whole file beside others that do so, without waiting; `false` when another holds it
  /// exclusively.
  public func lockForReading() throws(SystemError) -> Bool {
    if flock(number, LOCK_SH | LOCK_NB) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw .last("flock")
  }

  /// Takes the exclusive advisory lock of the whole file, and waits for it as long as another holds it.
  public func waitForExclusiveLock() throws(SystemError) { _ = try retrying("flock") { flock(number, LOCK_EX) } }

  /// Gives the advisory lock back, also while others still hold this descriptor.
  public func unlock() { _ = flock(number, LOCK_UN) }

  public var isTerminal: Bool { isatty(number) == 1 }

  private static func read(_ number: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    #if canImport(Glibc)
      Glibc.read(number, buffer.baseAddress, buffer.count)
    #else
      Darwin.read(number, buffer.baseAddress, buffer.count)
    #endif
  }

  private static func write(_ number: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Glibc)
      Glibc.write(number, bytes.baseAddress, bytes.count)
    #else
      Darwin.write(number, bytes.baseAddress, bytes.count)
    #endif
  }
}
