internal import CofferSystem
internal import Glibc

/// Reads at most 1 MiB from standard input and answers its MIME type, one line, on standard output.
///
/// The parsers of libmagic meet bytes that anyone may have written, so they run here: in a process that holds no key,
/// and that can do nothing but read its standard input, write its standard output and exit. The order matters: the
/// database is loaded first, then the process confines itself, and only then is the first byte read.
///
/// Exit codes: 0 answered · 69 no database · 70 cannot confine itself · 74 input or output failed.
@main
struct Command {
  /// As much as libmagic looks at.
  static let limit = 1 << 20

  static func main() {
    guard (try? ProcessHardening.occupyStandardDescriptors()) != nil else { _exit(74) }
    guard let database = MagicDatabase() else { fail(69, "libmagic's database cannot be loaded") }
    guard Confinement.apply() else { fail(70, "this process cannot be confined, so it reads nothing") }
    // From here on a message could not be written, and no other call be made.
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 16)
    guard let count = read(into: input), write(database.mediaType(of: input, count: count) + "\n") else { _exit(74) }
    _exit(0)
  }

  private static func read(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    var filled = 0
    while filled < buffer.count {
      let count = Glibc.read(STDIN_FILENO, buffer.baseAddress! + filled, buffer.count - filled)
      if count == 0 { break }
      if count < 0 {
        if errno == EINTR { continue }
        return nil
      }
      filled += count
    }
    return filled
  }

  private static func write(_ line: String) -> Bool {
    var rest = Array(line.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        return false
      }
      rest = rest.dropFirst(count)
    }
    return true
  }

  private static func fail(_ code: CInt, _ message: String) -> Never {
    let line = Array("coffer-content-type: \(message)\n".utf8)
    _ = Glibc.write(STDERR_FILENO, line, line.count)
    exit(code)
  }
}
