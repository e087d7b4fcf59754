import Foundation
import Glibc

/// Functions and constants that Glibc has and its Swift module does not show.
enum GNU {
  typealias Text = UnsafePointer<CChar>
  typealias Bytes = UnsafeMutableRawPointer
  typealias Constant = UnsafeRawPointer

  static let errorName = find("strerrorname_np", (@convention(c) (CInt) -> Text?).self)

  static let rename = find("renameat2", (@convention(c) (CInt, Text, CInt, Text, CUnsignedInt) -> CInt).self)
  static let statx = find("statx", (@convention(c) (CInt, Text, CInt, CUnsignedInt, Bytes) -> CInt).self)
  static let entries = find("getdents64", (@convention(c) (CInt, Bytes, Int) -> Int).self)
  static let allocate = find("fallocate", (@convention(c) (CInt, CInt, Int, Int) -> CInt).self)
  static let copyRange = find(
    "copy_file_range",
    (@convention(c) (CInt, UnsafeMutablePointer<Int>?, CInt, UnsafeMutablePointer<Int>?, Int, CUnsignedInt) -> Int).self
  )
  static let splice = find(
    "splice",
    (@convention(c) (CInt, UnsafeMutablePointer<Int>?, CInt, UnsafeMutablePointer<Int>?, Int, CUnsignedInt) -> Int).self
  )
  static let sendFile = find(
    "sendfile", (@convention(c) (CInt, CInt, UnsafeMutablePointer<Int>?, Int) -> Int).self)
  static let syncFileSystem = find("syncfs", (@convention(c) (CInt) -> CInt).self)

  static let setAttribute = find("lsetxattr", (@convention(c) (Text, Text, Constant?, Int, CInt) -> CInt).self)
  static let attribute = find("lgetxattr", (@convention(c) (Text, Text, Bytes?, Int) -> Int).self)
  static let attributes = find("llistxattr", (@convention(c) (Text, Bytes?, Int) -> Int).self)
  static let removeAttribute = find("lremovexattr", (@convention(c) (Text, Text) -> CInt).self)
  static let setFollowedAttribute = find("setxattr", (@convention(c) (Text, Text, Constant?, Int, CInt) -> CInt).self)
  static let followedAttribute = find("getxattr", (@convention(c) (Text, Text, Bytes?, Int) -> Int).self)
  static let followedAttributes = find("listxattr", (@convention(c) (Text, Bytes?, Int) -> Int).self)
  static let removeFollowedAttribute = find("removexattr", (@convention(c) (Text, Text) -> CInt).self)
  static let setOpenAttribute = find("fsetxattr", (@convention(c) (CInt, Text, Constant?, Int, CInt) -> CInt).self)
  static let openAttribute = find("fgetxattr", (@convention(c) (CInt, Text, Bytes?, Int) -> Int).self)

  static let setFileUser = find("setfsuid", (@convention(c) (CUnsignedInt) -> CInt).self)
  static let setFileGroup = find("setfsgid", (@convention(c) (CUnsignedInt) -> CInt).self)
  static let unshare = find("unshare", (@convention(c) (CInt) -> CInt).self)
  /// capget(2) and capset(2), which the C library has and does not declare.
  static let capabilities = find("capget", (@convention(c) (Constant, Bytes) -> CInt).self)
  static let setCapabilities = find("capset", (@convention(c) (Constant, Constant) -> CInt).self)
  /// syscall(2) of a call with two arguments; on the systems that Coffer runs on it takes them as any function does.
  static let call = find("syscall", (@convention(c) (Int, Int, UnsafeRawPointer?) -> Int).self)

  /// By uname(2).
  static func kernelIsAtLeast(_ major: Int, _ minor: Int) -> Bool {
    let version = ProcessInfo.processInfo.operatingSystemVersion
    return (version.majorVersion, version.minorVersion) >= (major, minor)
  }

  private static func find<Function>(_ name: String, _ type: Function.Type) -> Function {
    unsafeBitCast(dlsym(nil, name), to: type)
  }

  // MARK: Constants

  #if arch(arm64)
    static let direct: CInt = 0o200000
    static let setGroupsCall = 159
  #else
    static let direct: CInt = 0o40000
    static let setGroupsCall = 116
  #endif
  static let pathOnly: CInt = 0o10_000_000
  static let unnamed: CInt = 0o20_000_000 | O_DIRECTORY

  static let noAccessTime: CInt = 0o1_000_000

  static let seekData: CInt = 3
  static let seekHole: CInt = 4
  /// CLONE_FS: a thread's current folder and umask become its own.
  static let ownFolderAndMask: CInt = 0x200

  /// AT_REMOVEDIR.
  static let removeFolder: CInt = 0x200
  static let followLink: CInt = 0x400
  static let noFollow: CInt = 0x100
  /// AT_EACCESS.
  static let effective: CInt = 0x200
  static let here: CInt = -100
}

/// How fallocate(2) is to change a range.
enum RangeChange {
  static let allocate: CInt = 0
  static let keepSize: CInt = 1
  static let punchHole: CInt = 2
  static let collapse: CInt = 8
  static let zero: CInt = 16
  static let insert: CInt = 32
  static let unshare: CInt = 64
}

/// The flags of renameat2(2).
enum RenameFlag {
  static let noReplace: CUnsignedInt = 1
  static let exchange: CUnsignedInt = 2
  static let whiteout: CUnsignedInt = 4
}

/// The flags of setxattr(2).
enum AttributeFlag {
  static let create: CInt = 1
  static let replace: CInt = 2
}
