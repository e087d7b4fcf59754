internal import CFuse3
internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Glibc

/// One request of the kernel. It is answered exactly once: with what `answer`'s body replies, or with the failure that it
/// throws.
struct Request: @unchecked Sendable {
  let handle: fuse_req_t

  /// Runs `body`, which replies or throws.
  static func answer(_ handle: fuse_req_t?, _ body: (Request, MountServer) throws -> Void) {
    guard let handle, let data = fuse_req_userdata(handle) else { return }
    let request = Request(handle: handle)
    do {
      try body(request, Unmanaged<MountServer>.fromOpaque(data).takeUnretainedValue())
    } catch {
      request.fail(error)
    }
  }

  private static func number(of error: any Error) -> CInt {
    switch error {
    case is StaleNode: ESTALE
    case let error as ViewError: error.number
    case let error as SystemError: error.code
    default: EIO
    }
  }

  func fail(_ number: CInt) { fuse_reply_err(handle, number) }
  func fail(_ error: any Error) { fail(Self.number(of: error)) }
  func done() { fuse_reply_err(handle, 0) }

  /// Who asks.
  var owner: FileOwner {
    let context = fuse_req_ctx(handle)
    return FileOwner(user: context?.pointee.uid ?? 0, group: context?.pointee.gid ?? 0)
  }

  /// Whether who asks is of a group. Where the system does not tell, not.
  func isMember(of group: UInt32) -> Bool {
    if group == owner.group { return true }
    var groups: [gid_t] = []
    while true {
      let count = Int(fuse_req_getgroups(handle, CInt(groups.count), &groups))
      if count <= groups.count { return count > 0 && groups[..<count].contains(group) }
      groups = [gid_t](repeating: 0, count: count)
    }
  }

  /// Who asks to change content must not leave a file its set-user-ID bits.
  var takesPrivileges: Bool { owner.user != 0 || UntoldDetails.takesPrivileges }
}

/// What the kernel knows is no longer so: others have removed the file, or made one. It then looks the name up anew, and tells
/// the program what it finds.
struct StaleNode: Error {}

/// Runs `body`, which asks for a file by its number.
func existing<Result>(_ body: () throws -> Result) throws -> Result {
  do { return try body() } catch ViewError.notFound { throw StaleNode() }
}

/// Runs `body`, which makes a file. Where others have made one of the name since the kernel looked, the kernel looks anew and
/// opens that one, if the program may; unless it wanted to be the one that makes it (O_EXCL of open(2)).
func lookingAnew<Result>(unless isExclusive: Bool, _ body: () throws -> Result) throws -> Result {
  do { return try body() } catch ViewError.exists where !isExclusive { throw StaleNode() }
}

extension MountServer {
  /// How long the kernel may keep what it is told, in seconds: until it is told otherwise.
  static let keepingTime = 1e6

  /// The kernel's number of a file: its root is 1, whatever folder that is.
  func kernelNumber(_ number: InodeNumber) -> fuse_ino_t {
    number == view.root ? fuse_ino_t(FUSE_ROOT_ID) : number.value
  }

  func number(_ kernelNumber: fuse_ino_t) -> InodeNumber {
    kernelNumber == fuse_ino_t(FUSE_ROOT_ID) ? view.root : InodeNumber(value: kernelNumber)
  }

  func entry(_ attributes: FileAttributes) -> fuse_entry_param {
    var entry = fuse_entry_param()
    entry.ino = kernelNumber(attributes.number)
    entry.attr = stat(attributes)
    entry.attr_timeout = Self.keepingTime
    entry.entry_timeout = Self.keepingTime
    return entry
  }

  /// The name stands for nothing, which the kernel may remember as well.
  static var missing: fuse_entry_param {
    var entry = fuse_entry_param()
    entry.entry_timeout = keepingTime
    return entry
  }
}

extension stat {
  /// Bytes in a block of `st_blocks`, whatever the file system (stat(2)).
  private static let blockSize: UInt64 = 512

  init(_ attributes: FileAttributes) {
    self.init()
    st_ino = ino_t(attributes.number.value)
    st_mode = attributes.kind.fileType | mode_t(attributes.permissions)
    st_nlink = nlink_t(attributes.linkCount)
    st_uid = attributes.owner.user
    st_gid = attributes.owner.group
    st_size = off_t(clamping: attributes.byteCount)
    st_blocks = blkcnt_t(clamping: (attributes.storedByteCount + Self.blockSize - 1) / Self.blockSize)
    st_blksize = blksize_t(64 << 10)
    st_atim = timespec(attributes.accessed)
    st_mtim = timespec(attributes.modified)
    st_ctim = timespec(attributes.changed)
  }
}

extension NodeKind {
  var fileType: mode_t {
    switch self {
    case .file: S_IFREG
    case .directory: S_IFDIR
    case .symbolicLink: S_IFLNK
    case .fifo: S_IFIFO
    case .socket: S_IFSOCK
    }
  }

  /// Nil for devices, which a vault does not keep.
  init?(mode: mode_t) {
    switch mode & S_IFMT {
    case S_IFREG, 0: self = .file
    case S_IFIFO: self = .fifo
    case S_IFSOCK: self = .socket
    default: return nil
    }
  }
}

extension timespec {
  init(_ time: Timestamp) { self.init(tv_sec: time_t(time.seconds), tv_nsec: Int(time.nanoseconds)) }
}

extension Timestamp {
  init(_ time: timespec) { self.init(seconds: Int64(time.tv_sec), nanoseconds: UInt32(time.tv_nsec)) }
}

extension Array where Element == UInt8 {
  /// The bytes of a C string, without its end.
  init(_ text: UnsafePointer<CChar>) {
    self.init(UnsafeRawBufferPointer(start: text, count: strlen(text)))
  }
}
