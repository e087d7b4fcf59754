import CofferTestSupport
import Foundation
import Testing

/// Programs as they are on a system, run in a plot.
struct Program {
  /// Whether these can be run here; the comment for tests that are left out says which they need.
  static func areHere(_ names: String...) -> Bool {
    names.allSatisfy { name in
      ["/usr/bin/", "/bin/"].contains { FileManager.default.isExecutableFile(atPath: $0 + name) }
    }
  }

  private let plot: Plot
  private let home: TemporaryFolder

  init(in plot: Plot) throws {
    self.plot = plot
    home = try TemporaryFolder()
  }

  /// Runs a shell script in the plot that ends at the first command that fails; it must end well. Returns what it printed.
  @discardableResult
  func run(_ script: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
    let outcome = try start(script).wait()
    #expect(outcome.code == 0, "\(script)\n\(outcome.output)\n\(outcome.errors)", sourceLocation: sourceLocation)
    return outcome.value
  }

  func start(_ script: String) throws -> RunningProgram {
    let environment = [
      "PATH": "/usr/bin:/bin", "HOME": home.path, "TMPDIR": home.path, "LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
      "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A",
      "GIT_COMMITTER_EMAIL": "a@example.com", "PLAIN": home.path,
    ]
    return try RunningProgram(
      "/bin/sh", ["-ec", script], in: plot.path, environment: environment, errors: home("errors-\(UUID().uuidString)"))
  }

  /// A folder of the plain file system, for what comes from there and goes there: `$PLAIN` in scripts.
  func plain(_ name: String) -> String { home(name) }
}
