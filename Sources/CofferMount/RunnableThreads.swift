internal import Glibc

/// How many threads of the machine run, or would if there were a processor for them.
final class RunnableThreads: Sendable {
  private let file: CInt

  /// Nil where the kernel does not say.
  init?() {
    file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC)
    guard file >= 0, count != nil else { return nil }
  }

  deinit { if file >= 0 { close(file) } }

  /// The calling one is among them. Takes the kernel some microseconds.
  var count: Int? {
    withUnsafeTemporaryAllocation(byteCount: 128, alignment: 1) { bytes in
      let length = pread(file, bytes.baseAddress, bytes.count, 0)
      return length > 0 ? Self.count(in: bytes[..<length]) : nil
    }
  }

  /// - Parameter text: as proc_loadavg(5) has it: `0.00 0.01 0.05 2/80 11206`.
  static func count(in text: some Collection<UInt8>) -> Int? {
    let fields = text.split(separator: UInt8(ascii: " "))
    guard fields.count >= 4 else { return nil }
    return Int(String(decoding: fields[3].prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self))
  }
}
