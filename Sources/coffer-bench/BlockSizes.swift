internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// The same work at each block size, which is how the usual one is chosen: writing and reading a file from start to end in
/// calls of 1 MiB, and 4 KiB at random places.
enum BlockSizes {
  private static let step = 1 << 20

  static func measure(_ options: inout Options) throws {
    let size = try options.number("size", 256 << 20) / step * step
    let rounds = try options.number("rounds", 5)
    let calls = try options.number("calls", 20_000)
    let exponents = try options.numbers("exponents", Array(12...20))
    let vault = try BenchVault(options).create()
    let buffer = Buffer(step)
    for round in 0..<rounds {
      for exponent in exponents.rotated(by: round) {
        let parameters = ["block": 1 << exponent, "size": size]
        var file: VaultFile?
        let written = try seconds { file = try VaultFile(size, UInt8(exponent), vault) }
        guard let file else { continue }
        let read = try seconds {
          for offset in stride(from: 0, to: size, by: step) { try file.read(at: UInt64(offset), into: buffer.bytes) }
        }
        for (name, time) in [("sequential write", written), ("sequential read", read)] {
          try Line(
            measurement: name, subject: "coffer", round: round, parameters: parameters, seconds: time, bytes: size,
            calls: size / step
          ).print()
        }
        // Each call opens a block: of large ones, as many as make a GiB say as much.
        try RandomAccess.run([file], size, [1], min(calls, (1 << 30) >> exponent), 1, parameters)
        try file.remove()
      }
    }
    try vault.close()
  }
}
