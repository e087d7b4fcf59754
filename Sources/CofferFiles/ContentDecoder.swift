/// Makes content of a stream that comes in another form, such as encrypted by another program.
///
/// It learns only at the stream's end whether the stream is genuine. Whoever imports with it keeps nothing of what was
/// decoded where any call throws.
public protocol ContentDecoder: Sendable {
  /// Reads the stream's next bytes into `buffer`; called by one thread at a time.
  ///
  /// - Parameters:
  ///   - buffer: a positive multiple of 16 bytes while the stream lasts. All of it is filled, but at the stream's end.
  ///   - read: fills a buffer with what comes next, but at the stream's end; returns how many bytes.
  func portion(
    into buffer: UnsafeMutableRawBufferPointer, from read: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> EncodedPortion
}

/// Bytes that a decoder read and that are not content yet.
public struct EncodedPortion: Sendable {
  /// How many bytes of the buffer they take.
  public let byteCount: Int
  /// Makes content of them where they lie, in the buffer that they were read into, and returns how many bytes it has:
  /// as many, but at the stream's end. Several threads may do so with portions of their own.
  public let decode: @Sendable (_ buffer: UnsafeMutableRawBufferPointer) throws -> Int

  public init(
    byteCount: Int, decode: @escaping @Sendable (_ buffer: UnsafeMutableRawBufferPointer) throws -> Int
  ) {
    self.byteCount = byteCount
    self.decode = decode
  }
}
