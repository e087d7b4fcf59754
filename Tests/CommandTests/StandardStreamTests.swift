import Foundation
import Testing

/// A program that is started without some of the standard streams: what it opens must not take their place.
@Suite final class StandardStreamTests {
  let desk: Desk
  static let content = noise(300_000)

  init() throws {
    desk = try Desk()
    try desk.makeVault()
    try desk.done("put", "-", "/big", input: Self.content)
  }

  deinit { _ = try? desk.run("coffer", ["agent", "stop"]) }

  static let closings = [">&-", "<&- >&-", "<&- >&- 2>&-", ">&- 2>&-"]

  @Test(arguments: closings)
  func `what cannot be written is written nowhere else, and told by the code`(closing: String) throws {
    let before = desk.listing("vault", "keys").filter { !$0.contains("index.sqlite") && !$0.hasPrefix("vault/lock") }
    for arguments in ["cat /big", "get /big -", "get /big /dev/fd/1", "ls", "ls --json"] {
      #expect(try code("coffer \(arguments) --passcode-file passcode \(closing)") == 74, "\(arguments)")
    }
    #expect(try desk.read("vault/lock").count < 16)
    try desk.unlock()
    for arguments in ["cat /big", "get /big -", "get /big /dev/fd/1", "ls"] {
      #expect(try code("coffer \(arguments) \(closing)") == 74, "\(arguments)")
    }
    // What writes nothing needs no stream.
    #expect(try code("coffer mkdir /new \(closing)") == 0)
    try desk.served("rm", "-r", "/new")
    try desk.served("agent", "stop")
    #expect(try desk.read("vault/lock").count < 16)
    #expect(
      desk.listing("vault", "keys").filter { !$0.contains("index.sqlite") && !$0.hasPrefix("vault/lock") } == before)
  }

  @Test func `what cannot be read is not taken for an empty file`() throws {
    #expect(try code("coffer put - /new --passcode-file passcode <&-") == 74)
    #expect(try code("coffer put - /new --passcode-file passcode <&- >&- 2>&-") == 74)
    #expect(try code("coffer ls --passcode-file passcode <&-") == 0)
    try desk.unlock()
    #expect(try code("coffer put - /new <&-") == 74)
    #expect(try code("coffer ls <&- 2>&-") == 0)
    #expect(try desk.served("ls").output == "big\n")
  }

  @Test func `an agent that is started so serves as any other`() throws {
    #expect(try code("coffer unlock --passcode-file passcode <&- 2>&-") == 0)
    #expect(try desk.served("cat", "/big").bytes == Self.content)
    try desk.served("agent", "stop")
    #expect(try code("coffer unlock --passcode-file passcode <&- >&- 2>&-") == 74)
    #expect(try desk.served("cat", "/big").bytes == Self.content)
  }

  @Test func `the server and the helper keep to it as well`() throws {
    for closing in Self.closings {
      #expect(try code("coffer-server tenant create acme --data data \(closing)") != 0)
      try? desk.remove("data")
      #expect(try code("coffer-content-type < passcode \(closing.replacing("<&- ", with: ""))") == 74)
    }
    #expect(try code("coffer-content-type <&-") == 74)
  }

  /// The exit code of a line of the shell's.
  private func code(_ line: String) throws -> Int32 { try desk.shell(line).code }
}
