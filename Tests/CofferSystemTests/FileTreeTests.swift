import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite("Names that others chose")
struct FileTreeTests {
  private let folder: TemporaryFolder
  private let files = FileSystem()
  private let root: OwnedDescriptor

  init() throws {
    folder = try TemporaryFolder()
    root = try files.open(folder.path, .directory)
  }

  @Test func `are given to a file without replacing another`() throws {
    let name: [UInt8] = [0xFF, 0x20, 0x0A]
    for content: UInt8 in [1, 2] {
      try files.open("\(content)", [.writeOnly, .createNew], in: root).writeAll([content])
    }
    #expect(try files.renameWithoutReplacing("1", to: name, in: root))
    #expect(try !files.renameWithoutReplacing("2", to: name, in: root))
    #expect(Set(try files.names(in: root)) == [name, Array("2".utf8)])
    #expect(throws: SystemError(code: ENOENT, call: "rename")) {
      try files.renameWithoutReplacing("3", to: [65], in: root)
    }
  }

  @Test func `are removed with all that is below them, links unfollowed`() throws {
    try files.makeDirectories(folder("a/b/c"))
    try files.makeDirectories(folder("kept"))
    try files.open("kept/file", [.writeOnly, .createNew], in: root).writeAll([1])
    for place in ["a/file", "a/b/file", "a/b/c/file"] {
      _ = try files.open(place, [.writeOnly, .createNew], permissions: 0, in: root)
    }
    let inner = try files.open("a/b", .directory, in: root)
    _ = try files.open("odd", [.writeOnly, .createNew], in: inner)
    #expect(try files.renameWithoutReplacing("odd", to: [0xFF], in: inner))
    for (name, target) in [("folder", "kept"), ("file2", "kept/file"), ("nowhere", "none")] {
      try FileManager.default.createSymbolicLink(atPath: folder("a/b/\(name)"), withDestinationPath: folder(target))
    }
    try inner.setPermissions(0o500)
    try files.removeTree("a", in: root)
    #expect(try files.names(in: root) == [Array("kept".utf8)])
    #expect(try files.status(of: "kept/file", in: root)?.byteCount == 1)
    #expect(throws: SystemError(code: ENOENT, call: "open")) { try files.removeTree("a", in: root) }
  }

  @Test func `are removed where they are files or links themselves`() throws {
    try files.makeDirectories(folder("kept"))
    _ = try files.open("file", [.writeOnly, .createNew], in: root)
    try FileManager.default.createSymbolicLink(atPath: folder("link"), withDestinationPath: folder("kept"))
    try files.removeTree("file", in: root)
    try files.removeTree("link", in: root)
    #expect(try files.names(in: root) == [Array("kept".utf8)])
  }
}
