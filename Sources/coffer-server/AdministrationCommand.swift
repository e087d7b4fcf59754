internal import ArgumentParser
internal import CofferServer
internal import CofferServerSQLite
internal import CofferSystem
internal import Foundation

/// What a command prints: one value, or all of it as JSON.
protocol Output: Encodable {
  var value: String { get }
}

/// A command that works on the data directory itself, also while the server runs.
protocol AdministrationCommand: AsyncParsableCommand {
  associatedtype Created: Output
  /// Whether a data directory that is not there is made.
  static var startsStore: Bool { get }
  var common: CommonOptions { get }
  func perform(_ administration: Administration) async throws -> Created
}

extension AdministrationCommand {
  static var startsStore: Bool { false }

  func run() async throws {
    try await Failure.reporting {
      try ProcessHardening.apply()
      let directory = try DataDirectory(try common.dataOptions.resolved(), creating: Self.startsStore)
      let store = try SQLitePolicyStore(directory)
      let created = try await perform(Administration(store: store, serverKey: directory.serverKey))
      try store.close()
      try StandardOutput.write(line: common.json ? json(created) : created.value)
    }
  }

  private func json(_ created: Created) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(created), as: UTF8.self)
  }
}

/// Results. Not `print`: it keeps lines back when the output is a pipe.
enum StandardOutput {
  static func write(line: String) throws(SystemError) {
    try OwnedDescriptor.standardOutput.writeAll(Array("\(line)\n".utf8))
  }
}
