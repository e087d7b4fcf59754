import Glibc

/// A part of a file in memory, until the last reference to it goes.
final class Mapping: @unchecked Sendable {
  private let start: UnsafeMutableRawPointer
  let count: Int

  init(
    of file: Handle, at offset: Int = 0, count: Int, isPrivate: Bool = false, access: CInt = PROT_READ | PROT_WRITE
  ) throws {
    let result = mmap(nil, count, access, isPrivate ? MAP_PRIVATE : MAP_SHARED, file.number, offset)
    guard let result, result != UnsafeMutableRawPointer(bitPattern: -1) else { throw CallError(errno) }
    start = result
    self.count = count
  }

  deinit { munmap(start, count) }

  subscript(index: Int) -> UInt8 {
    get { start.load(fromByteOffset: index, as: UInt8.self) }
    set { start.storeBytes(of: newValue, toByteOffset: index, as: UInt8.self) }
  }

  subscript(range: Range<Int>) -> [UInt8] {
    get { Array(UnsafeRawBufferPointer(start: start + range.lowerBound, count: range.count)) }
    set {
      newValue.withUnsafeBytes { (start + range.lowerBound).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
    }
  }

  var bytes: [UInt8] { self[0..<count] }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// How many of its pages the kernel has in memory (mincore(2)).
  func residentPageCount() throws -> Int {
    var found = [UInt8](repeating: 0, count: (count + 4095) / 4096)
    try CallError.check(mincore(start, count, &found))
    return found.count { $0 & 1 != 0 }
  }

  /// msync(2): writes all of it back, and waits.
  func sync() throws { try CallError.check(msync(start, count, CInt(MS_SYNC))) }
}
