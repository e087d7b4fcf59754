internal import CFuse3

/// A request as the kernel writes it: a header and what belongs to its operation. The layout is that of `linux/fuse.h`,
/// which the kernel keeps for ever. Only what the library does not tell before it answers.
struct KernelRequest {
  enum Operation: UInt32 {
    case setAttributes = 4
    case open = 14
    case read = 15
    case write = 16
    case fsync = 20
    case initialise = 26
    case fsyncdir = 30
    case create = 35
    case fallocate = 43
    case copyFileRange = 47
    case makeUnnamedFile = 51  // FUSE_TMPFILE
  }

  static let headerByteCount = 40
  private static let operationOffset = 4
  private static let userOffset = 24
  private static let requesterOffset = 32
  private let bytes: UnsafeRawBufferPointer

  /// Nil for what is too short.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.headerByteCount else { return nil }
    self.bytes = bytes
  }

  init?(_ buffer: fuse_buf) { self.init(UnsafeRawBufferPointer(start: buffer.mem, count: buffer.size)) }

  /// Nil for those that nobody asks about here.
  var operation: Operation? {
    Operation(rawValue: bytes.loadUnaligned(fromByteOffset: Self.operationOffset, as: UInt32.self))
  }

  /// The thread that asks; 0 where the kernel asks by itself, as when it forgets a number or a file is closed.
  var requester: UInt32 { bytes.loadUnaligned(fromByteOffset: Self.requesterOffset, as: UInt32.self) }

  /// The user who asks.
  var user: UInt32 { bytes.loadUnaligned(fromByteOffset: Self.userOffset, as: UInt32.self) }

  /// Makes a request in `buffer` one of another operation with the same arguments. The buffer holds a header.
  static func set(_ operation: Operation, in buffer: fuse_buf) {
    buffer.mem.storeBytes(of: operation.rawValue, toByteOffset: operationOffset, as: UInt32.self)
  }

  /// How many bytes a reading wants.
  var readByteCount: Int { Int(argument(at: 16)) }

  /// What the kernel offers in the first exchange, as flags.
  var offers: UInt32 { argument(at: 12) }

  /// The kernel wants a file's set-user-ID bits taken with a change of its content (FUSE_HANDLE_KILLPRIV_V2).
  var takesPrivileges: Bool {
    switch operation {
    case .setAttributes: argument(at: 0) & 1 << 11 != 0  // FATTR_KILL_SUIDGID
    case .open: argument(at: 4) & 1 << 0 != 0  // FUSE_OPEN_KILL_SUIDGID
    case .write: argument(at: 20) & 1 << 2 != 0  // FUSE_WRITE_KILL_SUIDGID
    default: false
    }
  }

  /// 0 where the request is shorter.
  private func argument(at offset: Int) -> UInt32 {
    let place = Self.headerByteCount + offset
    return place + 4 <= bytes.count ? bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self) : 0
  }
}
