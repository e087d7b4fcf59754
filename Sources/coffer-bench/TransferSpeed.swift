internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// A large file in and out, in calls of 1 MiB, beside plain calls into a file in the same folder: write and read; and
/// import and export, beside a copy.
enum TransferSpeed {
  private static let step = 1 << 20

  static func measure(_ options: inout Options) throws {
    let size = try options.number("size", 1 << 30) / step * step
    let rounds = try options.number("rounds", 5)
    let place = try BenchVault(options)
    let vault = try place.create()
    let source = try PlainFile("source", in: place)
    let buffer = Buffer(step)
    try fill(source.descriptor, size, buffer)
    // The first round warms up.
    for round in 0...rounds {
      for subject in [Subject.coffer, .plain].rotated(by: round) {
        for (name, time) in try subject.transfer(vault, place, source, size, buffer) where round > 0 {
          try Line(
            measurement: name, subject: subject.rawValue, round: round, parameters: ["size": size], seconds: time,
            bytes: size, calls: size / step
          ).print()
        }
      }
    }
    try vault.close()
    try source.remove()
  }

  fileprivate static func fill(_ file: OwnedDescriptor, _ size: Int, _ buffer: Buffer) throws {
    for offset in stride(from: 0, to: size, by: step) { try file.writeAll(buffer.readable, at: UInt64(offset)) }
    try file.syncData()
  }

  fileprivate static func drain(_ file: OwnedDescriptor, _ size: Int, _ buffer: Buffer) throws {
    for offset in stride(from: 0, to: size, by: step) {
      _ = try file.readFully(at: UInt64(offset), into: buffer.bytes)
    }
  }

  fileprivate enum Subject: String {
    case coffer
    case plain

    func transfer(
      _ vault: Vault, _ place: BenchVault, _ source: PlainFile, _ size: Int, _ buffer: Buffer
    ) throws -> [(String, Double)] {
      switch self {
      case .coffer: try ours(vault, place, source, size, buffer)
      case .plain: try plain(place, source, size, buffer)
      }
    }

    private func ours(
      _ vault: Vault, _ place: BenchVault, _ source: PlainFile, _ size: Int, _ buffer: Buffer
    ) throws -> [(String, Double)] {
      let path = try VaultPath("imported")
      let imported = try seconds {
        try vault.importFile(
          ImportSource(descriptor: source.descriptor, byteCount: UInt64(size), permissions: 0o600, modified: nil),
          to: path)
        try vault.commit()
      }
      let target = try PlainFile("exported", in: place)
      let exported = try seconds {
        try vault.snapshot(of: path).export(to: target.descriptor, isSeekable: true)
        try target.descriptor.syncData()
      }
      try target.remove()
      try vault.remove(path)
      try vault.commit()
      return try [("import", imported), ("export", exported)] + calls(vault, size, buffer)
    }

    private func calls(_ vault: Vault, _ size: Int, _ buffer: Buffer) throws -> [(String, Double)] {
      let path = try VaultPath("written")
      let written = try seconds {
        let file = try vault.createFile(at: path, permissions: 0o600, exclusive: true)
        for offset in stride(from: 0, to: size, by: step) { try file.write(buffer.readable, at: UInt64(offset)) }
        try file.sync()
        try file.close()
      }
      let file = try vault.open(path, .reading)
      let read = try seconds {
        for offset in stride(from: 0, to: size, by: step) { _ = try file.read(at: UInt64(offset), into: buffer.bytes) }
      }
      try file.close()
      try vault.remove(path)
      try vault.commit()
      return [("write", written), ("read", read)]
    }

    private func plain(
      _ place: BenchVault, _ source: PlainFile, _ size: Int, _ buffer: Buffer
    ) throws -> [(String, Double)] {
      let copy = try PlainFile("copy", in: place)
      let copied = try seconds {
        for offset in stride(from: 0, to: size, by: step) {
          _ = try source.descriptor.readFully(at: UInt64(offset), into: buffer.bytes)
          try copy.descriptor.writeAll(buffer.readable, at: UInt64(offset))
        }
        try copy.descriptor.syncData()
      }
      try copy.remove()
      let file = try PlainFile("plain", in: place)
      let written = try seconds { try fill(file.descriptor, size, buffer) }
      let read = try seconds { try drain(file.descriptor, size, buffer) }
      try file.remove()
      return [("import", copied), ("export", copied), ("write", written), ("read", read)]
    }
  }
}
