internal import Synchronization

/// The pages of the console that are open, and wait for news. What is told is only that there is some.
final class Watchers: Sendable {
  /// Streams of one session: windows of one person.
  static let windows = 16

  let hub = EventHub()
  /// Each company has its own, so that none learns how much happens in others.
  private let marks = Mutex<[String: Int64]>([:])
  private let start: Int64

  /// - Parameter start: what no earlier run of the server has told.
  init(start: Int64) { self.start = start }

  /// How much has happened.
  func mark(of tenant: String) -> Int64 { marks.withLock { $0[tenant] ?? start } }

  /// Something of a company is not as it was.
  func wake(tenant: String) {
    let mark = marks.withLock { marks -> Int64 in
      let mark = (marks[tenant] ?? start) + 1
      marks[tenant] = mark
      return mark
    }
    hub.wake(tenant: tenant, revision: mark)
  }
}
