import CofferContainer
import CofferCrypto
import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@testable import coffer

/// The parts of the agent that need no process: its messages, and its clock.
@Suite struct AgentRequestTests {
  private let folder = FolderIdentity(device: 0x1_0203, inode: .max)

  private func message(_ body: AgentRequest.Body) -> [UInt8] {
    AgentRequest(body, of: folder).message.withUnsafeBytes { Array($0) }
  }

  /// Takes bytes in pieces as they are cut.
  private func take(_ bytes: [UInt8], pieces: () -> Int) throws -> AgentRequest? {
    let incoming = IncomingRequest()
    var rest = bytes[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(max(1, pieces())))
      rest = rest.dropFirst(piece.count)
      if let request = try piece.withUnsafeBytes({ try incoming.take($0) }) { return request }
    }
    return nil
  }

  @Test func `a request is taken as it was sent, in whatever pieces`() throws {
    var random = SeededGenerator(seed: 20_261_121)
    let arguments = ["put", "-", "", "ä ß", String(repeating: "long ", count: 9000)]
    let places = [
      GivenPlace(path: "/dev/fd/9", index: 5, below: "/ä"), GivenPlace(path: "/dev/stdin", index: 0, below: ""),
    ]
    let command = AgentRequest.Command(
      arguments: arguments, environment: ["HOME": "/h", "EMPTY": ""], hasTerminal: true, places: places)
    let bytes = message(.run(command))
    for largest in [1, 7, 4096, 1 << 20] {
      let request = try #require(try take(bytes) { Int.random(in: 1...largest, using: &random) })
      #expect(request.folder == folder)
      guard case .run(let taken) = request.body else { return #expect(Bool(false)) }
      #expect(taken == command)
    }
    let passcode = Array("a passcode".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
    guard case .unlock(let taken)? = try take(message(.unlock(passcode)), pieces: { 3 })?.body else {
      return #expect(Bool(false))
    }
    #expect(taken.withUnsafeBytes { Array($0) } == Array("a passcode".utf8))
    guard case .lock(true)? = try take(message(.lock(immediately: true)), pieces: { 99 })?.body,
      case .status(false)? = try take(message(.status(untilLocked: false)), pieces: { 99 })?.body,
      case .stop(true)? = try take(message(.stop(isForced: true)), pieces: { 99 })?.body
    else { return #expect(Bool(false)) }
  }

  @Test func `a command comes with the descriptors that it names, and no others`() {
    func command(_ hasTerminal: Bool, _ indices: [UInt8]) -> AgentRequest.Command {
      AgentRequest.Command(
        arguments: [], environment: [:], hasTerminal: hasTerminal,
        places: indices.map { GivenPlace(path: "\($0)", index: $0, below: "") })
    }
    func counts(_ command: AgentRequest.Command) -> [Int] { (0...30).filter { command.isWhole(with: $0) } }
    #expect(counts(command(false, [])) == [4] && counts(command(true, [])) == [5])
    #expect(counts(command(false, [0, 1, 2])) == [4] && counts(command(false, [4])) == [5])
    #expect(counts(command(true, [4, 0])) == [5] && counts(command(true, [5, 6])) == [7])
    // The folder's is for nothing else.
    #expect(counts(command(false, [3])).isEmpty)
  }

  @Test func `no bytes make the parser fail otherwise than it says`() throws {
    let seeds = [
      message(
        .run(
          AgentRequest.Command(
            arguments: ["ls", "-l"], environment: ["A": "b"], hasTerminal: false,
            places: [GivenPlace(path: "/dev/fd/3", index: 4, below: "")]))),
      message(.stop(isForced: false)),
      message(.status(untilLocked: true)), message(.lock(immediately: false)),
      message(.unlock(SecretBytes(count: 12) { _ in })),
    ]
    var taken = 0
    var refused = 0
    for seed in 0..<20_000 {
      var random = SeededGenerator(seed: UInt64(seed))
      var bytes = seeds[seed % seeds.count]
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
        case 1: bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random))
        case 2: bytes += random.bytes(Int.random(in: 1...40, using: &random))
        default:
          // A length that fits what is there, so that the change is found behind it.
          let header = IncomingRequest.headerByteCount
          guard bytes.count > header else { continue }
          let at = Int.random(in: header..<bytes.count, using: &random)
          bytes[at] = [0, 1, 127, 128, 255][Int.random(in: 0..<5, using: &random)]
          bytes.replaceSubrange(8..<12, with: UInt32(bytes.count - header).bigEndianBytes)
        }
        if bytes.isEmpty { break }
      }
      do {
        if try take(bytes, pieces: { Int.random(in: 1...64, using: &random) }) != nil { taken += 1 }
      } catch is MalformedBytes {
        refused += 1
      }
    }
    #expect(taken > 100 && refused > 1000, "\(taken) \(refused)")
  }

  @Test func `answers come as they were given`() throws {
    let folder = try TemporaryFolder()
    let place = try FileSystem().open(folder.path, .directory)
    let listener = try LocalSocket.listen("socket", in: place, path: folder.path)
    let client = try #require(try LocalSocket.connect("socket", in: place, path: folder.path))
    let agent = try #require(try listener.accept())
    let answers: [AgentAnswer] = [
      .accepted, .ping, .end(signal: 2), .exit(code: 77, brokenPipe: false), .exit(code: 74, brokenPipe: true),
      .notServed, .outcome(code: 0, text: ""), .outcome(code: -1, text: "ä"),
    ]
    for answer in answers { try agent.send(answer.bytes) }
    for answer in answers { #expect(try AgentAnswer.receive(from: client) == answer) }
    #expect(try client.peer() == ProcessHardening.userID)
  }

  @Test func `a vault is idle from its last command's end, and is locked for that once`() {
    let start = ContinuousClock.now
    var clock = IdleClock(limit: .seconds(60), now: start)
    func isDue(_ seconds: Int64) -> Bool { clock.isDue(now: start + .seconds(seconds)) }
    #expect(clock.remaining(now: start) == .seconds(60))
    #expect(isDue(59) == false)
    clock.begin()
    clock.begin()
    #expect(clock.remaining(now: start + .seconds(600)) == nil)
    clock.end(now: start + .seconds(100))
    #expect(isDue(900) == false)
    clock.end(now: start + .seconds(900))
    #expect(clock.remaining(now: start + .seconds(930)) == .seconds(30))
    #expect(isDue(960))
    #expect(isDue(2000) == false)
    #expect(clock.remaining(now: start + .seconds(2000)) == nil)
    clock.restart(now: start + .seconds(3000))
    #expect(isDue(3060))
    var never = IdleClock(limit: nil, now: start)
    let isEverDue = never.isDue(now: start + .seconds(1 << 40))
    #expect(!isEverDue)
  }
}
