import CofferFiles
import CofferSystem
import Testing

@testable import CofferVault

/// Which error each operation gives for what is wrong, as the manual page of its system call names it.
@Suite struct ErrorTests {
  /// A vault with one of each.
  struct Place {
    let vault: Vault
    let file, folder, full, link, fifo: InodeNumber
    let root = InodeNumber.rootFolder
    let none = InodeNumber(value: 999)
    let new = NewNode(permissions: 0o600)
    let long = [UInt8](repeating: 97, count: 256)

    init(_ vault: Vault) throws {
      self.vault = vault
      file = try vault.makeFile(Array("file".utf8), in: .rootFolder, new).number
      folder = try vault.makeFolder(Array("folder".utf8), in: .rootFolder, new).number
      full = try vault.makeFolder(Array("full".utf8), in: .rootFolder, new).number
      _ = try vault.makeFolder(Array("inner".utf8), in: full, new)
      link = try vault.makeSymbolicLink(Array("link".utf8), in: .rootFolder, to: Array("link".utf8), new).number
      fifo = try vault.makeSpecial(.fifo, Array("fifo".utf8), in: .rootFolder, new).number
      try vault.setExtendedAttribute([1], of: file, to: [])
    }

    func rename(_ old: String, _ new: String, _ mode: RenameMode = .replace) throws {
      try vault.rename(VaultPath(old), to: VaultPath(new), mode: mode)
    }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let expected: VaultError
    let body: @Sendable (Place) throws -> Void

    init(_ what: String, _ expected: VaultError, _ body: @escaping @Sendable (Place) throws -> Void) {
      testDescription = what
      self.expected = expected
      self.body = body
    }
  }

  private static let badName = VaultError.invalidName(InvalidName())
  private static let name = Array("new".utf8)
  private static let fileName = Array("file".utf8)
  private static let folderName = Array("folder".utf8)

  static let creation: [Case] = [
    Case("mkdir: ENAMETOOLONG", badName) { _ = try $0.vault.makeFolder($0.long, in: $0.root, $0.new) },
    Case("mkdir: ENOENT", .notFound) { _ = try $0.vault.makeFolder(name, in: $0.none, $0.new) },
    Case("mkdir: ENOTDIR", .notADirectory) { _ = try $0.vault.makeFolder(name, in: $0.file, $0.new) },
    Case("mkdir: EEXIST", .exists) { _ = try $0.vault.makeFolder(fileName, in: $0.root, $0.new) },
    Case("mkdir of the root: EEXIST", .exists) { try $0.vault.makeDirectory(at: .root) },
    Case("open with O_EXCL: EEXIST", .exists) { _ = try $0.vault.makeFile(folderName, in: $0.root, $0.new) },
    Case("open with O_CREAT in a link: ENOTDIR", .notADirectory) {
      _ = try $0.vault.makeFile(name, in: $0.link, $0.new)
    },
    Case("symlink: EEXIST", .exists) { _ = try $0.vault.makeSymbolicLink(fileName, in: $0.root, to: [1], $0.new) },
    Case("symlink to nothing: ENOENT", .invalidLink) {
      _ = try $0.vault.makeSymbolicLink(name, in: $0.root, to: [], $0.new)
    },
    Case("symlink to 4,096 bytes: ENAMETOOLONG", .invalidLink) {
      _ = try $0.vault.makeSymbolicLink(name, in: $0.root, to: [UInt8](repeating: 97, count: 4096), $0.new)
    },
    Case("mkfifo: EEXIST", .exists) { _ = try $0.vault.makeSpecial(.fifo, fileName, in: $0.root, $0.new) },
    Case("mknod of a folder: EINVAL", .wrongKind) {
      _ = try $0.vault.makeSpecial(.directory, name, in: $0.root, $0.new)
    },
  ]

  static let names: [Case] = [
    Case("lookup: ENOENT", .notFound) { _ = try $0.vault.lookup(name, in: $0.root) },
    Case("lookup: ENOTDIR", .notADirectory) { _ = try $0.vault.lookup(name, in: $0.file) },
    Case("lookup: EINVAL", badName) { _ = try $0.vault.lookup([46, 46], in: $0.root) },
    Case("stat below a file: ENOTDIR", .notADirectory) { _ = try $0.vault.attributes(at: VaultPath("file/x")) },
    Case("stat below a link, not following: ENOTDIR", .notADirectory) {
      _ = try $0.vault.attributes(at: VaultPath("link/x"))
    },
    Case("stat of a circle: ELOOP", .linkLoop) {
      _ = try $0.vault.attributes(at: VaultPath("link"), followingLinks: true)
    },
    Case("readdir: ENOTDIR", .notADirectory) { _ = try $0.vault.readFolder($0.file, limit: 1, withAttributes: false) },
    Case("readdir: ENOENT", .notFound) { _ = try $0.vault.readFolder($0.none, limit: 1, withAttributes: false) },
    Case("link: ENOENT", .notFound) { try $0.vault.link($0.none, as: name, in: $0.root) },
    Case("link: EEXIST", .exists) { try $0.vault.link($0.file, as: folderName, in: $0.root) },
    Case("link of a folder: EPERM", .folderLink) { try $0.vault.link($0.folder, as: name, in: $0.root) },
    Case("link into a file: ENOTDIR", .notADirectory) { try $0.vault.link($0.fifo, as: name, in: $0.file) },
    Case("link: EMLINK", .tooManyLinks) { place in
      try place.vault.index.perform { session in
        var inode = try session.inode(place.file)
        inode.linkCount = VaultFormat.linkLimit
        try session.store(inode)
      }
      try place.vault.link(place.file, as: name, in: place.root)
    },
    Case("unlink: ENOENT", .notFound) { try $0.vault.unlink(name, in: $0.root) },
    Case("unlink of a folder: EISDIR", .isADirectory) { try $0.vault.unlink(folderName, in: $0.root) },
    Case("unlink: ENOTDIR", .notADirectory) { try $0.vault.unlink(name, in: $0.link) },
    Case("rmdir: ENOENT", .notFound) { try $0.vault.removeFolder(name, in: $0.root) },
    Case("rmdir of a file: ENOTDIR", .notADirectory) { try $0.vault.removeFolder(fileName, in: $0.root) },
    Case("rmdir: ENOTEMPTY", .directoryNotEmpty) { try $0.vault.removeFolder(Array("full".utf8), in: $0.root) },
    Case("rmdir of the root: EBUSY", .rootFolder) { try $0.vault.remove(.root) },
    Case("rm -r of the root", .rootFolder) { try $0.vault.removeRecursively(.root) },
    Case("rm -r: ENOENT", .notFound) { try $0.vault.removeRecursively(VaultPath("new")) },
    Case("readlink of a file: EINVAL", .wrongKind) { _ = try $0.vault.readLink($0.file) },
    Case("open of a folder: EISDIR", .isADirectory) { _ = try $0.vault.open($0.folder, .reading) },
    Case("open of a link: ELOOP", .wrongKind) { _ = try $0.vault.open($0.link, .reading) },
    Case("a version of a fifo", .wrongKind) { _ = try $0.vault.snapshot(of: VaultPath("fifo")) },
    Case("a version of a folder: EISDIR", .isADirectory) { _ = try $0.vault.snapshot(of: VaultPath("folder")) },
    Case("readlink: ENOENT", .notFound) { _ = try $0.vault.readLink($0.none) },
  ]

  static let renaming: [Case] = [
    Case("rename: ENOENT", .notFound) { try $0.rename("new", "other") },
    Case("rename: ENOENT in the new path", .notFound) { try $0.rename("file", "new/x") },
    Case("rename: ENOTDIR in the new path", .notADirectory) { try $0.rename("file", "fifo/x") },
    Case("rename of the root: EBUSY", .rootFolder) { try $0.rename("/", "new") },
    Case("rename onto the root: EBUSY", .rootFolder) { try $0.rename("file", "/") },
    Case("rename of a file onto a folder: EISDIR", .isADirectory) { try $0.rename("file", "folder") },
    Case("rename of a link onto a folder: EISDIR", .isADirectory) { try $0.rename("link", "folder") },
    Case("rename of a folder onto a file: ENOTDIR", .notADirectory) { try $0.rename("folder", "file") },
    Case("rename onto a full folder: ENOTEMPTY", .directoryNotEmpty) { try $0.rename("folder", "full") },
    Case("rename into itself: EINVAL", .moveIntoItself) { try $0.rename("full", "full/inner/x") },
    Case("rename onto what it lies in: ENOTEMPTY", .directoryNotEmpty) { try $0.rename("full/inner", "full") },
    Case("RENAME_NOREPLACE: EEXIST", .exists) { try $0.rename("file", "folder", .refuse) },
    Case("RENAME_NOREPLACE onto itself: EEXIST", .exists) { try $0.rename("file", "file", .refuse) },
    Case("RENAME_EXCHANGE: ENOENT", .notFound) { try $0.rename("file", "new", .exchange) },
    Case("RENAME_EXCHANGE with something inside: EINVAL", .moveIntoItself) {
      try $0.rename("full", "full/inner", .exchange)
    },
    Case("RENAME_EXCHANGE with something around: EINVAL", .moveIntoItself) {
      try $0.rename("full/inner", "full", .exchange)
    },
  ]

  static let attributes: [Case] = [
    Case("stat: ENOENT", .notFound) { _ = try $0.vault.attributes(of: $0.none) },
    Case("chmod: ENOENT", .notFound) { try $0.vault.setAttributes(AttributeChanges(permissions: 0), of: $0.none) },
    Case("utimensat: EINVAL", .invalidTime) {
      let time = Timestamp(seconds: 0, nanoseconds: 1_000_000_000)
      try $0.vault.setAttributes(AttributeChanges(modified: .at(time)), of: $0.file)
    },
    Case("setxattr: ERANGE", .invalidAttributeName) { try $0.vault.setExtendedAttribute([], of: $0.file, to: []) },
    Case("setxattr: ERANGE", .invalidAttributeName) { try $0.vault.setExtendedAttribute($0.long, of: $0.file, to: []) },
    Case("setxattr: E2BIG", .attributeTooLarge) {
      try $0.vault.setExtendedAttribute([2], of: $0.file, to: [UInt8](repeating: 0, count: 65_537))
    },
    Case("setxattr: ENOENT", .notFound) { try $0.vault.setExtendedAttribute([2], of: $0.none, to: []) },
    Case("setxattr with XATTR_CREATE: EEXIST", .attributeExists) {
      try $0.vault.setExtendedAttribute([1], of: $0.file, to: [], mode: .create)
    },
    Case("setxattr with XATTR_REPLACE: ENODATA", .noSuchAttribute) {
      try $0.vault.setExtendedAttribute([2], of: $0.file, to: [], mode: .replace)
    },
    Case("setxattr: ENOSPC", .tooManyAttributes) { place in
      for number in 0...256 { try place.vault.setExtendedAttribute(Array("a\(number)".utf8), of: place.fifo, to: []) }
    },
    Case("getxattr: ENODATA", .noSuchAttribute) { _ = try $0.vault.extendedAttribute([2], of: $0.file) },
    Case("getxattr of a file with none: ENODATA", .noSuchAttribute) {
      _ = try $0.vault.extendedAttribute([1], of: $0.fifo)
    },
    Case("removexattr: ENODATA", .noSuchAttribute) { try $0.vault.removeExtendedAttribute([2], of: $0.file) },
    Case("listxattr: ENOENT", .notFound) { _ = try $0.vault.extendedAttributeNames(of: $0.none) },
  ]

  @Test func `each operation names what is wrong, and changes nothing`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    for (number, item) in (Self.creation + Self.names + Self.renaming + Self.attributes).enumerated() {
      let place = try Place(vault)
      let before = try vault.list(.root)
      #expect(throws: item.expected, "\(item.testDescription)") { try item.body(place) }
      // The two that prepare something first have changed that.
      if item.expected != .tooManyLinks, item.expected != .tooManyAttributes {
        #expect(try Set(vault.list(.root)) == Set(before), "\(item.testDescription), case \(number)")
      }
      for name in try vault.list(.root).map(\.name) {
        // A made-up count of names would keep the file.
        if item.expected == .tooManyLinks { try Self.mend(place) }
        try vault.removeRecursively(VaultPath.root.appending(name))
      }
    }
    try vault.close()
  }

  private static func mend(_ place: Place) throws {
    try place.vault.index.perform { session in
      guard var inode = try session.inodeIfPresent(place.file) else { return }
      inode.linkCount = 1
      try session.store(inode)
    }
  }
}
