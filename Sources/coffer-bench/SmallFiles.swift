internal import CofferFiles
internal import CofferSystem
internal import CofferVault
internal import Foundation

/// Small files, made one after the other: folders of `--per-folder`, contents of 100 to 2,000 bytes. A line for the first
/// ten thousand, and for every tenth of the whole; the last one says what memory the process took.
///
/// The vault stays, for the measurement of opening it.
enum SmallFiles {
  static func measure(_ options: inout Options) throws {
    let count = try options.number("count", 1_000_000)
    let perFolder = try options.number("per-folder", 1000)
    let place = try BenchVault(options)
    let vault = try place.create(costExponent: BenchVault.costExponent)
    let content = Buffer(2000)
    let marks = Set([10_000, count] + (1...10).map { $0 * count / 10 }).sorted()
    let baseline = ResidentMemory.reset()
    var done = 0
    for mark in marks where mark <= count {
      let first = done
      let time = try seconds {
        while done < mark {
          if done % perFolder == 0 { try vault.makeDirectory(at: folder(done / perFolder)) }
          try make(done, in: folder(done / perFolder), vault, content)
          done += 1
        }
        // What is counted is durable.
        if done == count || done == 10_000 { try vault.commit() }
      }
      try Line(
        measurement: "small files", subject: "coffer",
        parameters: ["count": count, "per folder": perFolder, "from": first, "to": mark], seconds: time,
        calls: mark - first, memory: ResidentMemory.peak(above: baseline)
      ).print()
    }
    try vault.close()
  }

  /// Makes so many files, for a measurement of what comes after.
  static func fill(_ vault: Vault, count: Int, perFolder: Int) throws {
    let content = Buffer(2000)
    for number in 0..<count {
      if number % perFolder == 0 { try vault.makeDirectory(at: folder(number / perFolder)) }
      try make(number, in: folder(number / perFolder), vault, content)
    }
  }

  private static func folder(_ number: Int) throws -> VaultPath { try VaultPath("folder-\(number)") }

  private static func make(_ number: Int, in folder: VaultPath, _ vault: Vault, _ content: Buffer) throws {
    // Sizes that differ, the same in every run.
    let size = 100 + number * 7919 % 1901
    let file = try vault.createFile(
      at: folder.appending(Array("file-\(number)".utf8)), permissions: 0o600, exclusive: true)
    try file.write(UnsafeRawBufferPointer(rebasing: content.readable[..<size]), at: 0)
    try file.close()
  }
}
