/// A file's content in the simplest form that holds terabytes of nothing: chunks that were written, and a size.
struct ContentModel: Equatable {
  private static let chunkSize: UInt64 = 4096
  private var chunks: [UInt64: [UInt8]] = [:]
  private(set) var byteCount: UInt64 = 0

  func read(at offset: UInt64, count: Int) -> [UInt8] {
    guard offset < byteCount else { return [] }
    let end = min(byteCount, offset + UInt64(count))
    var result: [UInt8] = []
    var position = offset
    while position < end {
      let within = Int(position % Self.chunkSize)
      let length = Int(min(Self.chunkSize - UInt64(within), end - position))
      if let chunk = chunks[position / Self.chunkSize] {
        result += chunk[within..<(within + length)]
      } else {
        result += [UInt8](repeating: 0, count: length)
      }
      position += UInt64(length)
    }
    return result
  }

  mutating func write(_ bytes: [UInt8], at offset: UInt64) {
    if bytes.isEmpty { return }
    set(bytes, at: offset)
    byteCount = max(byteCount, offset + UInt64(bytes.count))
  }

  private mutating func set(_ bytes: [UInt8], at offset: UInt64) {
    var done = 0
    while done < bytes.count {
      let position = offset + UInt64(done)
      let within = Int(position % Self.chunkSize)
      let length = min(Int(Self.chunkSize) - within, bytes.count - done)
      chunks[
        position / Self.chunkSize, default: [UInt8](repeating: 0, count: Int(Self.chunkSize))
      ].replaceSubrange(within..<(within + length), with: bytes[done..<(done + length)])
      done += length
    }
  }

  mutating func truncate(to newCount: UInt64) {
    if newCount < byteCount { zero(newCount..<byteCount) }
    byteCount = newCount
  }

  mutating func punch(_ range: Range<UInt64>) { zero(range.clamped(to: 0..<byteCount)) }

  private mutating func zero(_ range: Range<UInt64>) {
    guard !range.isEmpty else { return }
    let touched = (range.lowerBound / Self.chunkSize)..<((range.upperBound - 1) / Self.chunkSize + 1)
    for index in chunks.keys.filter({ touched.contains($0) }) {
      let chunk = (index * Self.chunkSize)..<((index + 1) * Self.chunkSize)
      let part = range.clamped(to: chunk)
      if part == chunk {
        chunks[index] = nil
      } else {
        set([UInt8](repeating: 0, count: part.count), at: part.lowerBound)
      }
    }
  }

  /// The first byte at or behind `offset` that is not zero.
  func firstNonzero(from offset: UInt64) -> UInt64? {
    for index in chunks.keys.sorted() where (index + 1) * Self.chunkSize > offset {
      let start = index * Self.chunkSize
      let from = Int(max(offset, start) - start)
      if let found = chunks[index]?[from...].firstIndex(where: { $0 != 0 }) {
        let position = start + UInt64(found)
        return position < byteCount ? position : nil
      }
    }
    return nil
  }
}
