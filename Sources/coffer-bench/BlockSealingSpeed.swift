internal import CofferCrypto
internal import CofferSystem
internal import Crypto
internal import Foundation

/// Sealing and opening blocks in memory, beside the library's own calls on the same bytes.
///
/// The peer leaves what it made where it is, while a sealer puts it where it is wanted. `swift-crypto` opens
/// a box that was made before the clock ran; `swift-crypto from bytes` makes the box from stored bytes first, as every
/// reader must.
enum BlockSealingSpeed {
  static func measure(_ options: inout Options) throws {
    let rounds = try options.number("rounds", 9)
    let sizes = try options.numbers("blocks", [4, 16, 32, 64, 256, 1024].map { $0 << 10 })
    let work = try options.number("work", 96 << 20)
    for size in sizes {
      let subjects = try [Ours(size) as any Subject, Library(size), LibraryFromBytes(size)]
      // A block more costs a call more: small ones are not to take ten times as long as large ones.
      let calls = max(16, work / (size + 12_288))
      for round in 0..<rounds {
        for subject in subjects.rotated(by: round) {
          try line("seal", subject, size, calls, round, subject.seal)
          try line("open", subject, size, calls, round, subject.open)
        }
        // Longer than the others: within a few milliseconds, a system may not yet have moved a thread to a core of its own.
        for threads in [1, 2] { try threadLines(threads, size, 8 * calls, round) }
      }
    }
  }

  private static func line(
    _ name: String, _ subject: any Subject, _ size: Int, _ calls: Int, _ round: Int, _ body: () throws -> Void
  ) throws {
    for _ in 0..<4 { try body() }
    let time = try seconds { for _ in 0..<calls { try body() } }
    try Line(
      measurement: name, subject: subject.name, round: round, parameters: ["block": size, "threads": 1], seconds: time,
      bytes: calls * size, calls: calls
    ).print()
  }

  private static func threadLines(_ threads: Int, _ size: Int, _ calls: Int, _ round: Int) throws {
    let subjects = try (0..<threads).map { _ in try Ours(size) }
    for isSealing in [true, false] {
      let time = try seconds {
        try Threads.run(threads) { index in
          for _ in 0..<calls { try isSealing ? subjects[index].seal() : subjects[index].open() }
        }
      }
      try Line(
        measurement: isSealing ? "seal on threads" : "open on threads", subject: "coffer", round: round,
        parameters: ["block": size, "threads": threads], seconds: time, bytes: threads * calls * size,
        calls: threads * calls
      ).print()
    }
  }
}

private protocol Subject {
  var name: String { get }
  func seal() throws
  func open() throws
}

private struct Ours: Subject, Sendable {
  let name = "coffer"
  private let sealer = BlockSealer(fileKey: SecretKey(), page: 0, context: Randomness.bytes(42))
  private let plaintext: Buffer
  private let sealed: Buffer
  private let ciphertext: Buffer
  private let stored: BlockSeal

  init(_ size: Int) throws {
    plaintext = Buffer(size)
    sealed = Buffer(size)
    ciphertext = Buffer(size)
    stored = try sealer.seal(plaintext.readable, block: 5, into: ciphertext.bytes)
  }

  func seal() throws {
    _ = try sealer.seal(plaintext.readable, block: 5, into: sealed.bytes)
  }

  func open() throws {
    try sealer.open(ciphertext.readable, block: 5, seal: stored, into: plaintext.bytes)
  }
}

private class Library: Subject {
  var name: String { "swift-crypto" }
  fileprivate let key = SymmetricKey(size: .bits256)
  fileprivate let plaintext: [UInt8]
  fileprivate let context = Randomness.bytes(50)
  fileprivate let box: AES.GCM.SealedBox

  init(_ size: Int) throws {
    plaintext = Randomness.bytes(size)
    box = try AES.GCM.seal(plaintext, using: key, authenticating: context)
  }

  func seal() throws { _ = try AES.GCM.seal(plaintext, using: key, authenticating: context) }
  func open() throws { _ = try AES.GCM.open(box, using: key, authenticating: context) }
}

private final class LibraryFromBytes: Library {
  override var name: String { "swift-crypto from bytes" }
  private var stored: [UInt8] = []

  override init(_ size: Int) throws {
    try super.init(size)
    stored = box.combined.map(Array.init) ?? []
  }

  override func open() throws {
    _ = try AES.GCM.open(AES.GCM.SealedBox(combined: stored), using: key, authenticating: context)
  }
}
