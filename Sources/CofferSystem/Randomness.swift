internal import CCoffer

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Random bytes from the system's generator.
public enum Randomness {
  public static func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      fill(UnsafeMutableRawBufferPointer(buffer))
      initialized = count
    }
  }

  /// Fills `buffer` with one call of the system for as much as it gives at once.
  ///
  /// Nothing is drawn ahead and kept: a machine that is copied while it runs would hand the same bytes out twice.
  public static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    var filled = 0
    while filled < buffer.count {
      let count = coffer_random(buffer.baseAddress! + filled, buffer.count - filled)
      if count > 0 {
        filled += count
      } else if count == 0 || errno != EINTR {
        // Without randomness nothing may go on: every key and nonce would be a guess.
        fatalError("the system's random generator does not answer")
      }
    }
  }
}
