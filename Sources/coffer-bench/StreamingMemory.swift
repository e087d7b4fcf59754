internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// Peak memory above the open vault at rest, while one file of `--size` goes in and out: through write and read, and
/// through an import from a pipe and an export to one (`--from` and `--to`, such as /dev/fd/3).
///
/// The bytes are made as they are needed and thrown away as they come, so only the vault takes room.
enum StreamingMemory {
  private static let step = 1 << 20

  static func measure(_ options: inout Options) throws {
    let size = try options.number("size", 10 << 30) / step * step
    let place = try BenchVault(options)
    // Made, closed and opened again: what making it took is not the baseline.
    try place.create().close()
    let vault = try place.open()
    let buffer = Buffer(step)
    // The caller's, and there before the vault moves anything.
    buffer.bytes.initializeMemory(as: UInt8.self, repeating: 1)
    let path = try VaultPath("streamed")
    let baseline = ResidentMemory.reset()

    func line(_ name: String, _ body: () throws -> Void) throws {
      _ = ResidentMemory.reset()
      let time = try seconds(body)
      try Line(
        measurement: "memory", subject: name, parameters: ["size": size], seconds: time, bytes: size,
        memory: ResidentMemory.peak(above: baseline)
      ).print()
    }

    try line("write") { try write(size, to: path, vault, buffer) }
    try line("read") { try read(size, from: path, vault, buffer) }
    try vault.remove(path)
    try vault.commit()
    let files = FileSystem()
    let input = try files.open(options.text("from"), .readOnly)
    try line("import") {
      try vault.importFile(
        ImportSource(descriptor: input, byteCount: nil, permissions: 0o600, modified: nil), to: path)
      try vault.commit()
    }
    let output = try files.open(options.text("to"), .writeOnly)
    try line("export") { try vault.snapshot(of: path).export(to: output, isSeekable: false) }
    try vault.close()
  }

  /// Each piece begins with its own place, so that reading can tell them apart.
  private static func write(_ size: Int, to path: VaultPath, _ vault: Vault, _ buffer: Buffer) throws {
    let file = try vault.createFile(at: path, permissions: 0o600, exclusive: true)
    for offset in stride(from: 0, to: size, by: step) {
      buffer.bytes.storeBytes(of: UInt64(offset), as: UInt64.self)
      try file.write(buffer.readable, at: UInt64(offset))
    }
    try file.sync()
    try file.close()
  }

  private static func read(_ size: Int, from path: VaultPath, _ vault: Vault, _ buffer: Buffer) throws {
    let file = try vault.open(path, .reading)
    for offset in stride(from: 0, to: size, by: step) {
      let count = try file.read(at: UInt64(offset), into: buffer.bytes)
      guard count == step, buffer.bytes.load(as: UInt64.self) == UInt64(offset) else {
        throw Options.Invalid(message: "what was read is not what was written")
      }
    }
    try file.close()
  }
}
