internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// The first bytes of a source, overwritten when they are left.
struct SourceStart: @unchecked Sendable {
  // Nobody writes to it any more.
  private let buffer: TransferBuffer
  let count: Int

  fileprivate init(_ buffer: TransferBuffer, count: Int) {
    self.buffer = buffer
    self.count = count
  }

  /// As long as this lives.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]) }
}

/// Hands the runs of an import's source to workers: a file's at their offsets, in parallel; a stream's in order.
final class SourceReader: Sendable {
  private let source: ImportSource
  private let runByteCount: Int
  private let control: TransferControl
  private let state: Mutex<State>
  /// Bytes of content that a stream gave.
  private let streamed = Atomic<UInt64>(0)

  private struct State {
    var nextRun: UInt64 = 0
    /// What was read from a stream before it was known to be large.
    var start: SourceStart?
    var ended = false
  }

  init(_ source: ImportSource, start: SourceStart, runs: BlockRuns, control: TransferControl) {
    self.source = source
    self.control = control
    runByteCount = runs.byteCount
    state = Mutex(State(start: start))
  }

  /// The first bytes, more than fit into a record: a multiple of 16, as a decoder wants it.
  static func start(of source: ImportSource, control: TransferControl) throws -> SourceStart {
    let buffer = TransferBuffer(count: (VaultFormat.inlineLimit / 16 + 1) * 16)
    let count =
      source.byteCount == nil
      ? try readPortion(of: source, into: buffer.bytes, control: control).decode(buffer.bytes)
      : try source.descriptor.readFully(at: 0, into: buffer.bytes)
    return SourceStart(buffer, count: count)
  }

  /// Reads until `buffer` is full or the stream ends.
  private static func readPortion(
    of source: ImportSource, into buffer: UnsafeMutableRawBufferPointer, control: TransferControl
  ) throws -> EncodedPortion {
    guard let decoder = source.decoder else {
      let count = try readStream(source, into: buffer, control: control)
      return EncodedPortion(byteCount: count) { _ in count }
    }
    return try decoder.portion(into: buffer) { try readStream(source, into: $0, control: control) }
  }

  /// Reads until `buffer` is full or the stream ends. A stream that has nothing yet is waited for, not blocked in, so
  /// that an interrupt is heard.
  private static func readStream(
    _ source: ImportSource, into buffer: UnsafeMutableRawBufferPointer, control: TransferControl
  ) throws -> Int {
    var filled = 0
    while filled < buffer.count {
      if control.isCancelled() { throw VaultError.cancelled }
      guard try source.descriptor.waitUntilReadable(milliseconds: 100) else { continue }
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
      guard let count = try source.descriptor.readAvailable(into: rest) else { continue }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Reads the next run into `buffer`, which holds one whole run; nil at the end.
  func next(into buffer: UnsafeMutableRawBufferPointer) throws -> (run: UInt64, count: Int)? {
    guard let byteCount = source.byteCount else { return try nextOfStream(into: buffer) }
    let run = state.withLock { state in
      defer { state.nextRun += 1 }
      return state.nextRun
    }
    let offset = run * UInt64(runByteCount)
    guard offset < byteCount else { return nil }
    let expected = Int(min(UInt64(runByteCount), byteCount - offset))
    let count = try source.descriptor.readFully(
      at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<expected]))
    guard count == expected else { throw VaultError.sourceChanged }
    return (run, count)
  }

  private func nextOfStream(into buffer: UnsafeMutableRawBufferPointer) throws -> (run: UInt64, count: Int)? {
    let taken = try state.withLock { state -> (run: UInt64, start: Int, portion: EncodedPortion)? in
      guard !state.ended else { return nil }
      let startCount = state.start?.count ?? 0
      if let start = state.start { buffer.copyMemory(from: start.bytes) }
      state.start = nil
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[startCount..<runByteCount])
      let portion = try Self.readPortion(of: source, into: rest, control: control)
      if portion.byteCount < rest.count { state.ended = true }
      guard startCount + portion.byteCount > 0 else { return nil }
      defer { state.nextRun += 1 }
      return (state.nextRun, startCount, portion)
    }
    guard let (run, start, portion) = taken else { return nil }
    // Beside the other workers: only reading, and what a decoder must do in order, needs the lock.
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[start..<runByteCount])
    let count = start + (try portion.decode(rest))
    // Not under the lock, which the next worker has for as long as it reads.
    streamed.wrappingAdd(UInt64(count), ordering: .relaxed)
    // What a decoder takes away at the end may be all of the last portion.
    return count > 0 ? (run, count) : nil
  }

  /// The size of the whole source. Throws `sourceChanged` where a file is not as long as it was at the start.
  func finish() throws -> UInt64 {
    guard let byteCount = source.byteCount else { return streamed.load(ordering: .relaxed) }
    guard try source.descriptor.status().byteCount == byteCount else { throw VaultError.sourceChanged }
    return byteCount
  }
}
