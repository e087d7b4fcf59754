import Glibc
import Testing

/// Somebody whom the file system asks for permission.
struct Person: Hashable, Sendable, CustomStringConvertible {
  let name: String
  let user: uid_t
  let group: gid_t
  var groups: [gid_t] = []
  /// Capabilities that they are not to have, by their numbers.
  var lacking: [UInt32] = []

  /// They share the group 2001.
  static let one = Person(name: "one", user: 1001, group: 2001)
  static let fellow = Person(name: "fellow", user: 1002, group: 2002, groups: [2001])
  static let stranger = Person(name: "stranger", user: 1003, group: 2003)
  /// Root, who may not leave set-user-ID bits to a file that it changes (CAP_FSETID).
  static let humbleRoot = Person(name: "root without CAP_FSETID", user: 0, group: 0, lacking: [4])
  static let everyone = [one, fellow, stranger]

  /// Whether a test can be another user.
  static let canBeAnother = geteuid() == 0
  static let needsRoot: Comment = "only root can try what other users may do"

  var description: String { name }

  /// Makes the calling thread's access to files this person's, for good.
  ///
  /// The user and group for files alone: the process stays whose it is, and the thread loses root's power over files.
  fileprivate func become() throws {
    _ = try groups.withUnsafeBytes {
      try CallError.check(GNU.call(GNU.setGroupsCall, groups.count, $0.baseAddress))
    }
    _ = GNU.setFileGroup(group)
    _ = GNU.setFileUser(user)
    // Each answers with what it was before; no number is ever -1's.
    guard GNU.setFileGroup(.max) == CInt(group), GNU.setFileUser(.max) == CInt(user) else { throw CallError(EPERM) }
    if !lacking.isEmpty { try giveUpCapabilities() }
  }

  private func giveUpCapabilities() throws {
    // _LINUX_CAPABILITY_VERSION_3, of this thread.
    let header: [UInt32] = [0x2008_0522, 0]
    // Twice those in effect, those that can be, and those that are handed on: of the first 32, and of the others.
    var sets = [UInt32](repeating: 0, count: 6)
    try CallError.check(GNU.capabilities(header, &sets))
    for number in lacking { sets[0] &= ~(1 << number) }
    try CallError.check(GNU.setCapabilities(header, sets))
  }
}

/// A thread of its own with a current folder and a umask of its own, and somebody's identity.
private final class OwnThread<Value> {
  let person: Person?
  let body: () throws -> Value
  var result: Result<Value, any Error>?

  init(_ person: Person?, _ body: @escaping () throws -> Value) {
    self.person = person
    self.body = body
  }

  func run() {
    result = Result {
      try CallError.check(GNU.unshare(GNU.ownFolderAndMask))
      try person?.become()
      return try body()
    }
  }

  func start() throws -> pthread_t {
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { pointer in
        Unmanaged<AnyThread>.fromOpaque(pointer!).takeRetainedValue().run()
        return nil
      }, Unmanaged.passRetained(AnyThread(run: run)).toOpaque())
    guard code == 0 else { throw CallError(code) }
    return thread
  }
}

private final class AnyThread {
  let run: () -> Void
  init(run: @escaping () -> Void) { self.run = run }
}

/// Runs `body` on a thread of its own, as somebody, and waits for it.
///
/// Its umask is 022 at first, whatever the process's is.
@discardableResult
func onOwnThread<Value>(as person: Person? = nil, _ body: () throws -> Value) throws -> Value {
  try withoutActuallyEscaping(body) { body in
    let thread = OwnThread(person) {
      umask(0o022)
      return try body()
    }
    pthread_join(try thread.start(), nil)
    return try thread.result!.get()
  }
}

/// Runs `body` on so many threads at once, waits for all, and throws what the first of them threw.
@discardableResult
func inParallel<Value>(_ count: Int, _ body: @Sendable (Int) throws -> Value) throws -> [Value] {
  try withoutActuallyEscaping(body) { body in
    let threads = (0..<count).map { number in OwnThread(nil) { try body(number) } }
    let handles = try threads.map { try $0.start() }
    for handle in handles { pthread_join(handle, nil) }
    return try threads.map { try $0.result!.get() }
  }
}
