import CofferCrypto
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import CofferContainer

@Suite("Open-In delivery")
struct OpenInDeliveryTests {
  private let folder: TemporaryFolder
  private let container: AppContainer
  private let bytes = Randomness.bytes(700_001)

  init() throws {
    folder = try TemporaryFolder()
    container = AppContainer(id: UUID(), containers: folder.path, files: FileSystem())
    try container.create()
  }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: container.inboxPath).sorted()
  }

  private func contents(_ name: String) throws -> [UInt8] {
    Array(try Data(contentsOf: URL(filePath: container.inboxPath + "/" + name)))
  }

  private func deliver(
    _ bytes: [UInt8], as name: String, files: FileSystem = FileSystem(), stillCurrent: () throws -> Bool = { true }
  ) throws -> String {
    let path = try OpenInDelivery(files: files).deliver(
      BytesReader(bytes), named: Array(name.utf8), to: container, stillCurrent: stillCurrent)
    return String(decoding: path, as: UTF8.self)
  }

  @Test(arguments: [0, 1, 262_144, 700_001]) func `gives a whole copy that nobody may write to`(count: Int) throws {
    let content = Array(bytes[..<count])
    #expect(try deliver(content, as: "report.pdf") == container.inboxPath + "/report.pdf")
    #expect(try names() == ["report.pdf"])
    #expect(try contents("report.pdf") == content)
    let status = try #require(try FileSystem().status(of: container.inboxPath + "/report.pdf"))
    #expect(status.kind == .file && status.permissions == 0o400)
  }

  @Test func `numbers copies with the same name, and replaces none`() throws {
    for number in 1...4 { _ = try deliver([UInt8(number)], as: "report.pdf") }
    #expect(try names() == ["report-2.pdf", "report-3.pdf", "report-4.pdf", "report.pdf"])
    #expect(try contents("report.pdf") == [1] && contents("report-4.pdf") == [4])
    try FileManager.default.removeItem(atPath: container.inboxPath + "/report-3.pdf")
    #expect(try deliver([5], as: "report.pdf").hasSuffix("/report-3.pdf"))
  }

  @Test(arguments: ["Data", "Data/Application"])
  func `follows no link on the way`(part: String) throws {
    let manager = FileManager.default
    let (place, outside) = (folder(part), folder("outside"))
    try manager.moveItem(atPath: place, toPath: outside)
    try manager.createSymbolicLink(atPath: place, withDestinationPath: outside)
    #expect(throws: AppError.damagedContainer) { try deliver(bytes, as: "report.pdf") }
    #expect(throws: AppError.self) { try container.create() }
    #expect(throws: AppError.self) { try container.remove() }
    let kept = try manager.subpathsOfDirectory(atPath: outside).filter { $0.hasSuffix("Documents/Inbox") }
    #expect(kept.count == 1)
  }

  @Test func `asks whether the decision holds when the copy is complete and nameless`() throws {
    var seen: [String]?
    _ = try deliver(bytes, as: "report.pdf") {
      seen = try names()
      return true
    }
    // Where the system can, there is nothing that the app could open early. (The temporary folder can.)
    #expect(seen == [])
    #expect(try names() == ["report.pdf"])
  }

  @Test func `leaves nothing when the decision no longer holds`() throws {
    struct Damaged: Error {}
    #expect(throws: AppError.outdatedDecision) { try deliver(bytes, as: "report.pdf") { false } }
    #expect(throws: Damaged.self) { try deliver(bytes, as: "report.pdf") { throw Damaged() } }
    #expect(try names() == [])
  }

  @Test func `leaves nothing when the content cannot be read to its end`() throws {
    struct Damaged: Error {}
    struct Source: ContentReader {
      let byteCount: UInt64 = 1 << 20
      let fails: Bool
      func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        if offset < 500_000 { return min(buffer.count, 100_000) }
        if fails { throw Damaged() }
        return 0
      }
    }
    for (fails, isExpected) in [(true, { $0 is Damaged }), (false, { $0 as? AppError == .incompleteContent })]
      as [(Bool, (any Error) -> Bool)]
    {
      let error = #expect(throws: (any Error).self) {
        try OpenInDelivery().deliver(Source(fails: fails), named: [65], to: container) { true }
      }
      #expect(error.map(isExpected) == true)
    }
    #expect(try names() == [])
  }

  @Test(arguments: [
    (SystemCall.open, 0), (.write, 0), (.write, 2), (.sync, 0), (.rename, 0), (.rename, 1),
  ]) func `leaves nothing when the system refuses`(call: SystemCall, after: Int) throws {
    if after == 1, call == .rename { _ = try deliver([1], as: "report.pdf") }
    let before = try names()
    let fault = FailingOnce(call, after: after)
    #expect(throws: AppError.system(SystemError(code: 28, call: call.rawValue))) {
      try deliver(bytes, as: "report.pdf", files: FileSystem(faults: fault))
    }
    #expect(fault.didFail)
    #expect(try names() == before)
  }

  @Test(arguments: [
    "", ".", "..", "/", "a/b", "../a", "a\u{0}", "a\u{0}b", String(repeating: "a", count: 256),
  ]) func `refuses a name that no file can have`(name: String) throws {
    #expect(throws: AppError.invalidFileName) { try deliver([1], as: name) }
    #expect(try names() == [])
  }

  @Test func `takes any other name, text or not`() throws {
    let delivery = OpenInDelivery()
    let all: [[UInt8]] = [
      [0xFF, 0xFE], [0x0A], [0x20], Array("...".utf8), Array("-rf".utf8), [UInt8](repeating: 97, count: 255),
      Array("e\u{301}".utf8), Array("é".utf8),
    ]
    for name in all {
      let path = try delivery.deliver(BytesReader([1]), named: name, to: container) { true }
      #expect(path == Array((container.inboxPath + "/").utf8) + name)
    }
    let inbox = try FileSystem().open(container.inboxPath, .directory)
    #expect(Set(try FileSystem().names(in: inbox)) == Set(all))
  }

  @Test func `writes through no link, wherever it stands`() throws {
    let outside = folder("outside")
    let manager = FileManager.default
    try manager.createDirectory(atPath: outside + "/Inbox", withIntermediateDirectories: true)
    // A link under the very name.
    try manager.createSymbolicLink(
      atPath: container.inboxPath + "/report.pdf", withDestinationPath: outside + "/target")
    #expect(try deliver([1], as: "report.pdf").hasSuffix("/report-2.pdf"))
    #expect(try FileSystem().status(of: outside + "/target") == nil)
    // A link in place of the Inbox, and of the folders above it.
    for part in ["/Documents/Inbox", "/Documents", ""] {
      let path = container.path + part
      try manager.moveItem(atPath: path, toPath: path + ".moved")
      try manager.createSymbolicLink(atPath: path, withDestinationPath: path + ".moved")
      #expect(throws: AppError.damagedContainer) { try deliver([1], as: "a") }
      try manager.removeItem(atPath: path)
      #expect(throws: AppError.damagedContainer) { try deliver([1], as: "a") }
      try manager.moveItem(atPath: path + ".moved", toPath: path)
    }
    #expect(try manager.contentsOfDirectory(atPath: outside + "/Inbox") == [])
    #expect(throws: Never.self) { try deliver([1], as: "a") }
  }
}

@Suite("Numbered names")
struct FileNameTests {
  @Test(arguments: [
    ("report.pdf", "report-2.pdf"), ("report", "report-2"), ("a.tar.gz", "a.tar-2.gz"), (".hidden", ".hidden-2"),
    (".hidden.txt", ".hidden-2.txt"), ("dot.", "dot-2."),
  ]) func `have the number before the extension`(name: String, expected: String) {
    #expect(String(decoding: FileName.numbered(Array(name.utf8), 2), as: UTF8.self) == expected)
  }

  @Test func `are shortened before the number, between characters`() {
    let long = FileName.numbered([UInt8](repeating: 97, count: 251) + Array(".pdf".utf8), 10)
    #expect(long == [UInt8](repeating: 97, count: 248) + Array("-10.pdf".utf8))
    for character in ["ü", "€", "😀"] {
      for padding in 0..<4 {
        let name = String(repeating: "x", count: padding) + String(repeating: character, count: 100)
        let bytes = Array(name.utf8).prefix(250)
        let whole = String(decoding: bytes, as: UTF8.self).replacingOccurrences(of: "\u{FFFD}", with: "")
        let numbered = FileName.numbered(Array((whole + ".pdf").utf8), 1234)
        #expect(numbered.count <= FileName.byteLimit)
        #expect(String(validating: numbered, as: UTF8.self)?.hasSuffix("-1234.pdf") == true)
      }
    }
    // Bytes that are no text are still a name.
    #expect(FileName.numbered([UInt8](repeating: 0x80, count: 255), 2).count >= 250)
    // What follows the dot is too long to be an extension.
    let odd = Array("a.".utf8) + [UInt8](repeating: 98, count: 253)
    #expect(FileName.numbered(odd, 2).suffix(2) == Array("-2".utf8)[...])
  }

  @Test func `are valid, and differ`() {
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<2000 {
      let count = Int.random(in: 1...255, using: &generator)
      let name = (0..<count).map { _ in UInt8.random(in: 1...255, using: &generator) }
      guard FileName.isValid(name) else { continue }
      let all = [name] + [2, 3, 10, 9999].map { FileName.numbered(name, $0) }
      #expect(all.allSatisfy(FileName.isValid) && Set(all).count == all.count)
    }
  }
}
