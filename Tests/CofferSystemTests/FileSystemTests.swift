import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite struct FileSystemTests {
  @Test func `a file is replaced whole or not at all`() throws {
    let folder = try TemporaryFolder()
    let files = FileSystem()
    let directory = try files.open(folder.path, .directory)
    try files.replaceDurably("f", in: directory, with: [1])
    try files.replaceDurably("f", in: directory, with: [2, 3])
    #expect(try files.open("f", .readOnly, in: directory).contents(limit: 10) == [2, 3])
    struct Failing: FaultPlan {
      let call: SystemCall
      func willCall(_ call: SystemCall) throws(SystemError) {
        if call == self.call { throw SystemError(code: EIO, call: call.rawValue) }
      }
    }
    for call in [SystemCall.open, .write, .sync, .rename] {
      let failing = FileSystem(faults: Failing(call: call))
      #expect(throws: SystemError.self) { try failing.replaceDurably("f", in: directory, with: [9]) }
      #expect(try files.open("f", .readOnly, in: directory).contents(limit: 10) == [2, 3], "\(call)")
      #expect(try files.names(in: directory) == [[102]], "\(call)")
    }
  }

  @Test func `a limit is a limit, and links at the end are not followed`() throws {
    let folder = try TemporaryFolder()
    let files = FileSystem()
    let directory = try files.open(folder.path, .directory)
    try files.replaceDurably("f", in: directory, with: [UInt8](repeating: 7, count: 100_000))
    #expect(try files.open("f", .readOnly, in: directory).contents(limit: 100_000).count == 100_000)
    #expect(throws: SystemError(code: EFBIG, call: "read")) {
      try files.open("f", .readOnly, in: directory).contents(limit: 99_999)
    }
    try FileManager.default.createSymbolicLink(atPath: folder("link"), withDestinationPath: folder("f"))
    #expect(throws: SystemError.self) { try files.open("link", [.readOnly, .noFollow], in: directory) }
    #expect(try files.status(of: "link", in: directory)?.kind == .symbolicLink)
    #expect(throws: SystemError.self) { try files.open("link", [.writeOnly, .createNew], in: directory) }
  }

  @Test func `a staged file has no name before it is published, and takes nobody's`() throws {
    let folder = try TemporaryFolder()
    let files = FileSystem()
    let directory = try files.open(folder.path, .directory)
    do {
      let staged = try StagedFile(in: directory, files: files)
      try staged.descriptor.writeAll([1, 2, 3])
      #expect(try files.names(in: directory) == [])
      #expect(try staged.publish(as: [0xff, 0x20]))
    }
    let second = try StagedFile(in: directory, files: files)
    #expect(try second.publish(as: [0xff, 0x20]) == false)
    #expect(try files.open([0xff, 0x20], .readOnly, in: directory).contents(limit: 10) == [1, 2, 3])
    #expect(try files.names(in: directory) == [[0xff, 0x20]])
  }

  @Test func `hexadecimal digits come back, and nothing else is taken`() {
    let bytes = (0...255).map { UInt8($0) }
    #expect([UInt8](hexadecimal: bytes.hexadecimal) == bytes)
    for text in ["0", "0g", "zz", " 0", "é0"] { #expect([UInt8](hexadecimal: text) == nil) }
  }
}
