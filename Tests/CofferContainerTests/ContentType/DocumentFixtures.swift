import Foundation

/// Documents that real programs wrote, in Tests/Fixtures/Documents.
enum DocumentFixtures {
  static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Fixtures/Documents")

  static func all() throws -> [(name: String, bytes: [UInt8])] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map { name in
      (name, Array(try Data(contentsOf: folder.appending(path: name))))
    }
  }

  static func archives() throws -> [[UInt8]] {
    try all().map(\.bytes).filter { $0.starts(with: [0x50, 0x4b, 3, 4]) && $0.count < 200_000 }
  }
}
