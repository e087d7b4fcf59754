import CofferContainer
import CofferCrypto
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite("A team's key file")
struct TeamKeyFileTests {
  @Test func `is made once, for its owner only, and read again`() throws {
    let folder = try TemporaryFolder()
    let path = folder("team.key")
    let key = try TeamKeyFile.create(at: path)
    #expect(try FileSystem().status(of: path)?.permissions == 0o600)
    #expect(try TeamKeyFile.read(path).verifyingKey == key)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(text.wholeMatch(of: /coffer-team-key-1 [0-9a-f]{64}\n/) != nil)
    #expect(throws: AppError.alreadyExists) { try TeamKeyFile.create(at: path) }
    #expect(try TeamKeyFile.read(path).verifyingKey == key)
    #expect(try TeamKeyFile.create(at: folder("other.key")) != key)
  }

  @Test func `is not made through a link`() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createSymbolicLink(atPath: folder("link"), withDestinationPath: folder("target"))
    #expect(throws: AppError.alreadyExists) { try TeamKeyFile.create(at: folder("link")) }
    #expect(try FileSystem().status(of: folder("target")) == nil)
  }

  @Test(arguments: [0o640, 0o604, 0o620, 0o602, 0o610]) func `is refused when others may use it`(mode: Int) throws {
    let folder = try TemporaryFolder()
    let path = folder("team.key")
    _ = try TeamKeyFile.create(at: path)
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    #expect(throws: AppError.exposedKey) { try TeamKeyFile.read(path) }
  }

  @Test func `is refused in any other form`() throws {
    let folder = try TemporaryFolder()
    let path = folder("team.key")
    _ = try TeamKeyFile.create(at: path)
    let good = Array(try Data(contentsOf: URL(filePath: path)))
    var bad: [[UInt8]] = [[], Array(good.dropLast()), good + [0x0A], Array(good.dropFirst()) + [0x0A]]
    for (place, byte) in [(0, "C"), (16, "2"), (18, "g"), (81, "A"), (82, " ")] as [(Int, Character)] {
      var altered = good
      altered[place] = byte.asciiValue!
      bad.append(altered)
    }
    for bytes in bad {
      try Data(bytes).write(to: URL(filePath: path))
      #expect(throws: AppError.malformedKey, "\(bytes.count)") { try TeamKeyFile.read(path) }
    }
    try Data(good).write(to: URL(filePath: path))
    #expect(throws: Never.self) { try TeamKeyFile.read(path) }
    #expect(throws: AppError.malformedKey) { try TeamKeyFile.read(folder.path) }
    #expect(throws: AppError.system(SystemError(code: 2, call: "open"))) { try TeamKeyFile.read(folder("none")) }
  }

  @Test(arguments: [SystemCall.write, .sync]) func `leaves nothing when it cannot be written`(call: SystemCall) throws {
    let folder = try TemporaryFolder()
    #expect(throws: AppError.system(SystemError(code: 28, call: call.rawValue))) {
      try TeamKeyFile.create(at: folder("team.key"), files: FileSystem(faults: FailingOnce(call, after: 0)))
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
  }
}
