internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// Writes and reads of 4 KiB at random places of a file that is there already, on one thread and on several, beside plain
/// calls on a file of the same size in the same folder. Writing ends with a sync for both.
enum RandomAccess {
  private static let piece = 4 << 10

  static func measure(_ options: inout Options) throws {
    let rounds = try options.number("rounds", 5)
    let calls = try options.number("calls", 100_000)
    let threadCounts = try options.numbers("threads", [1, 4])
    let place = try BenchVault(options)
    let vault = try place.create()
    for size in try options.numbers("sizes", [256 << 20, 4 << 30]) {
      let parameters = ["size": size]
      let subjects: [any RandomFile] = [
        try VaultFile(size, nil, vault), try PlainRandomFile(size, place),
      ]
      try run(subjects, size, threadCounts, calls, rounds, parameters)
      for subject in subjects { try subject.remove() }
    }
    try vault.close()
  }

  static func run(
    _ subjects: [any RandomFile], _ size: Int, _ threadCounts: [Int], _ calls: Int, _ rounds: Int,
    _ parameters: [String: Int]
  ) throws {
    for round in 0...rounds {
      for threads in threadCounts {
        for subject in subjects.rotated(by: round) {
          for isWriting in [true, false] {
            let each = calls / threads
            let time = try seconds {
              try Threads.run(threads) { index in
                try access(subject, isWriting, size, each, seed: UInt64(round * 64 + index))
              }
              if isWriting { try subject.sync() }
            }
            // The first round warms up.
            if round == 0 { continue }
            try Line(
              measurement: isWriting ? "random write" : "random read", subject: subject.name, round: round,
              parameters: parameters.merging(["threads": threads]) { $1 }, seconds: time,
              bytes: each * threads * piece, calls: each * threads
            ).print()
          }
        }
      }
    }
  }

  private static func access(
    _ file: any RandomFile, _ isWriting: Bool, _ size: Int, _ calls: Int, seed: UInt64
  ) throws {
    let buffer = Buffer(piece)
    // The same places for everyone: a linear congruential generator, whose upper bits are good enough here.
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    for _ in 0..<calls {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let offset = (state >> 20) % UInt64(size / piece) * UInt64(piece)
      if isWriting {
        try file.write(buffer.readable, at: offset)
      } else {
        try file.read(at: offset, into: buffer.bytes)
      }
    }
  }
}

/// A file that several threads read and write at once.
protocol RandomFile: Sendable {
  var name: String { get }
  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws
  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws
  func sync() throws
  func remove() throws
}

struct VaultFile: RandomFile {
  let name = "coffer"
  private let vault: Vault
  private let file: OpenFile
  private static let step = 1 << 20

  /// Makes a full file of `size` bytes; the vault's own block size where `blockSizeExponent` is nil.
  init(_ size: Int, _ blockSizeExponent: UInt8?, _ vault: Vault) throws {
    self.vault = vault
    file = try vault.createFile(
      at: VaultPath("random"), permissions: 0o600, exclusive: true, blockSizeExponent: blockSizeExponent)
    let buffer = Buffer(Self.step)
    for offset in stride(from: 0, to: size, by: Self.step) { try file.write(buffer.readable, at: UInt64(offset)) }
    try file.sync()
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws { try file.write(bytes, at: offset) }

  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
    _ = try file.read(at: offset, into: buffer)
  }

  func sync() throws { try file.sync() }

  func remove() throws {
    try file.close()
    try vault.remove(VaultPath("random"))
    try vault.commit()
  }
}

struct PlainRandomFile: RandomFile {
  let name = "plain"
  private let file: PlainFile
  private static let step = 1 << 20

  init(_ size: Int, _ place: BenchVault) throws {
    file = try PlainFile("random", in: place)
    let buffer = Buffer(Self.step)
    for offset in stride(from: 0, to: size, by: Self.step) {
      try file.descriptor.writeAll(buffer.readable, at: UInt64(offset))
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws {
    try file.descriptor.writeAll(bytes, at: offset)
  }

  func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws {
    _ = try file.descriptor.readFully(at: offset, into: buffer)
  }

  func sync() throws { try file.descriptor.syncData() }
  func remove() throws { try file.remove() }
}
