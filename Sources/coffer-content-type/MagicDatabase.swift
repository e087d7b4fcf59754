internal import CMagic
internal import Glibc

/// libmagic's compiled database, loaded into memory. It goes with the process.
struct MagicDatabase {
  private let cookie: magic_t

  /// The system's database; nil when it cannot be loaded.
  init?() {
    // A date in a format would make libmagic ask for the time zone, and that opens a file.
    setenv("TZ", "UTC0", 1)
    tzset()
    // Nothing is unpacked: a compressed file is what its outside says.
    guard let cookie = magic_open(MAGIC_MIME_TYPE | MAGIC_NO_CHECK_COMPRESS) else { return nil }
    self.cookie = cookie
    guard magic_load(cookie, nil) == 0 else { return nil }
  }

  /// The MIME type of the first `count` bytes; `application/octet-stream` when libmagic knows none.
  func mediaType(of bytes: UnsafeMutableRawBufferPointer, count: Int) -> String {
    guard let answer = magic_buffer(cookie, bytes.baseAddress, count) else { return "application/octet-stream" }
    return String(cString: answer)
  }
}
