internal import CFuse3
internal import Glibc

enum MachineProcessors {
  /// Those of the machine that run, whoever may use them.
  static var count: Int { Int(sysconf(CInt(_SC_NPROCESSORS_ONLN))) }

  private static let wordCount = Int(coffer_processor_words)

  /// Those on which the calling thread may run, from the lowest number on; nil where the kernel does not say.
  static var ofThread: [Int]? { processors(of: 0) }

  /// Those on which the first thread of the process may run, which keeps to none.
  static var usual: [Int]? { processors(of: getpid()) }

  /// - Parameter thread: of the process; 0 for the calling one.
  static func processors(of thread: pid_t) -> [Int]? {
    var words = [UInt64](repeating: 0, count: wordCount)
    guard coffer_get_processors(thread, &words) >= 0 else { return nil }
    return (0..<wordCount * UInt64.bitWidth).filter { words[$0 / UInt64.bitWidth] & 1 << ($0 % UInt64.bitWidth) != 0 }
  }

  /// Has the calling thread run on one processor alone. Where that is refused, it runs as before.
  static func keepThread(to processor: Int) {
    var words = [UInt64](repeating: 0, count: wordCount)
    words[processor / UInt64.bitWidth] |= 1 << (processor % UInt64.bitWidth)
    _ = coffer_set_processors(0, words)
  }

  /// Has a thread of the process run wherever its first one may.
  static func free(_ thread: pid_t) {
    var words = [UInt64](repeating: 0, count: wordCount)
    if coffer_get_processors(getpid(), &words) >= 0 { _ = coffer_set_processors(thread, words) }
  }
}
