internal import CofferSystem
internal import Foundation

/// Measures the engine, beside peers where there are any, and prints one line of JSON for each measurement.
///
/// It says what took how long and judges nothing: `Scripts/bench-engine` and `Scripts/bench-sizes` run it, make the
/// ratios within each round, and take their medians.
@main
struct Command {
  static func main() {
    // As the programs do, which also have what is freed written over.
    AllocatorTuning.keepFreedBlocks()
    var words = Array(CommandLine.arguments.dropFirst())
    guard let name = words.first, let measurement = measurements[name] else {
      fail(64, "usage: coffer-bench MEASUREMENT [--OPTION VALUE]…\nmeasurements: \(measurements.keys.sorted())")
    }
    words.removeFirst()
    do {
      var options = try Options(words)
      try measurement(&options)
    } catch let error as Options.Invalid {
      fail(64, error.message)
    } catch {
      fail(70, "\(name): \(error)")
    }
  }

  private static let measurements: [String: @Sendable (inout Options) throws -> Void] = [
    "calls": CallCosts.measure,
    "sealing": BlockSealingSpeed.measure,
    "transfer": TransferSpeed.measure,
    "small-files": SmallFiles.measure,
    "opening": OpeningTime.measure,
    "locking": LockingTime.measure,
    "memory": StreamingMemory.measure,
    "random-access": RandomAccess.measure,
    "block-sizes": BlockSizes.measure,
    "rncryptor": RNCryptorSpeed.measure,
    "file-sizes": FileSizes.measure,
    "wipe": WipeTime.measure,
  ]

  private static func fail(_ code: Int32, _ message: String) -> Never {
    FileHandle.standardError.write(Data("coffer-bench: \(message)\n".utf8))
    exit(code)
  }
}

/// The options of a measurement: `--name value`, each at most once.
struct Options {
  struct Invalid: Error { let message: String }

  private var values: [String: String] = [:]

  init(_ words: [String]) throws {
    guard words.count.isMultiple(of: 2) else { throw Invalid(message: "each option has one value") }
    for index in stride(from: 0, to: words.count, by: 2) {
      guard words[index].hasPrefix("--") else { throw Invalid(message: "not an option: \(words[index])") }
      values[String(words[index].dropFirst(2))] = words[index + 1]
    }
  }

  func number(_ name: String, _ usual: Int) throws -> Int {
    guard let text = values[name] else { return usual }
    guard let value = Int(text), value > 0 else { throw Invalid(message: "--\(name) needs a number above 0") }
    return value
  }

  func numbers(_ name: String, _ usual: [Int]) throws -> [Int] {
    guard let text = values[name] else { return usual }
    return try text.split(separator: ",").map { word in
      guard let value = Int(word) else { throw Invalid(message: "--\(name) needs numbers with commas") }
      return value
    }
  }

  func text(_ name: String) throws -> String {
    guard let text = values[name] else { throw Invalid(message: "--\(name) is missing") }
    return text
  }
}
