internal import CofferSystem
internal import Crypto
internal import Foundation
internal import Synchronization

/// Opens data in RNCryptor's format, versions 2 and 3, as a stream: in memory that does not depend on its size.
///
/// The code that authenticates the data stands at its end. **Until ``next(into:from:)`` has returned the portion that is
/// the last, nothing that was opened is verified**, and all of it has to be thrown away where that throws. The last block
/// is lent only when the whole fits its code, and padding is looked at only then.
///
/// Portions are read and authenticated in order, one at a time. What was read can be decrypted elsewhere meanwhile, which
/// is what makes it fast.
public final class RNCryptorOpener: Sendable {
  private let secret: RNCryptorSecret
  private let state = Mutex(State.start)

  private enum State {
    case start
    case open(Opening)
    case ended
    case failed(any Error)
  }

  /// Throws `RNCryptorError.emptyPassword`.
  public init(secret: RNCryptorSecret) throws(RNCryptorError) {
    if case .password(let password) = secret, password.count == 0 { throw .emptyPassword }
    self.secret = secret
  }

  /// Reads the next portion of ciphertext into `buffer`.
  ///
  /// - Parameters:
  ///   - buffer: a positive multiple of 16 bytes. All of it is filled, but by the last portion.
  ///   - read: fills a buffer with what comes next, but at the end of the data; returns how many bytes.
  /// - Returns: what is in the buffer now; a portion without bytes when the data has ended.
  /// - Throws: `RNCryptorError`, or what `read` throws; then the same again each time.
  public func next(
    into buffer: UnsafeMutableRawBufferPointer, from read: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> RNCryptorPortion {
    try state.withLock { state in
      do {
        var opening: Opening
        switch state {
        case .start: opening = try Opening(secret, from: read)
        case .open(let present): opening = present
        case .ended: return RNCryptorPortion.none
        case .failed(let error): throw error
        }
        let portion = try opening.next(into: buffer, from: read)
        state = portion.isLast ? .ended : .open(opening)
        return portion
      } catch {
        state = .failed(error)
        throw error
      }
    }
  }
}

/// Ciphertext that ``RNCryptorOpener`` read into a buffer.
public struct RNCryptorPortion: Sendable {
  /// Bytes of ciphertext, from the buffer's start.
  public let byteCount: Int
  /// True where the whole data ends here and was found genuine.
  public let isLast: Bool
  fileprivate let key: SecretKey?
  fileprivate let iv: [UInt8]

  fileprivate static let none = RNCryptorPortion(byteCount: 0, isLast: true, key: nil, iv: [])

  /// Decrypts the portion where it lies, in the buffer that it was read into; returns how many bytes of plaintext it has.
  /// Any thread may do so.
  ///
  /// Throws `RNCryptorError.malformedPadding`.
  public func open(_ buffer: UnsafeMutableRawBufferPointer) throws(RNCryptorError) -> Int {
    guard let key else { return 0 }
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<byteCount])
    BlockChaining.decrypt(bytes, key: key, iv: iv)
    guard isLast else { return byteCount }
    // PKCS#7 (RFC 5652, 6.3). That the code fitted leaves nobody to learn anything from how long this takes.
    let padding = Int(bytes[byteCount - 1])
    guard (1...BlockChaining.blockSize).contains(padding), bytes.suffix(padding).allSatisfy({ $0 == UInt8(padding) })
    else { throw .malformedPadding }
    return byteCount - padding
  }
}

/// The reading of one stream, behind its header.
private struct Opening {
  private let key: SecretKey
  private var hash: HMAC<SHA256>
  /// Of the block that comes next.
  private var iv: [UInt8]
  /// What was read and not passed on, because it may be the last block and the code behind it.
  private var held: [UInt8] = []

  private static let heldByteCount = BlockChaining.blockSize + RNCryptorHeader.tagByteCount

  init(_ secret: RNCryptorSecret, from read: (UnsafeMutableRawBufferPointer) throws -> Int) throws {
    var start = try Self.bytes(RNCryptorHeader.startByteCount, from: read)
    let count = try RNCryptorHeader.byteCount(startingWith: start)
    start += try Self.bytes(count - start.count, from: read)
    let header = try RNCryptorHeader(start)
    let keys = try secret.keys(for: header)
    key = keys.encryption
    hash = clearingStack { HMAC(key: keys.authentication.key) }
    hash.update(data: start)
    iv = header.iv
  }

  mutating func next(
    into buffer: UnsafeMutableRawBufferPointer, from read: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> RNCryptorPortion {
    precondition(!buffer.isEmpty && buffer.count.isMultiple(of: BlockChaining.blockSize))
    var count = min(held.count, buffer.count)
    buffer.copyBytes(from: held[..<count])
    held.removeFirst(count)
    if count < buffer.count { count += try read(UnsafeMutableRawBufferPointer(rebasing: buffer[count...])) }
    if count == buffer.count { held += try Self.bytes(Self.heldByteCount - held.count, from: read) }
    guard held.count == Self.heldByteCount else { return try last(buffer, count) }
    return portion(UnsafeRawBufferPointer(buffer), isLast: false)
  }

  /// The data has ended, with `count` bytes in the buffer and what is held behind them.
  private mutating func last(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int) throws -> RNCryptorPortion {
    let byteCount = count + held.count - RNCryptorHeader.tagByteCount
    guard byteCount > 0, byteCount.isMultiple(of: BlockChaining.blockSize) else { throw RNCryptorError.truncated }
    let tag = Array(buffer[byteCount..<count]) + held
    let portion = portion(UnsafeRawBufferPointer(rebasing: buffer[..<byteCount]), isLast: true)
    guard equalInConstantTime(Array(hash.finalize()), tag) else { throw RNCryptorError.notAuthentic }
    return portion
  }

  private mutating func portion(_ ciphertext: UnsafeRawBufferPointer, isLast: Bool) -> RNCryptorPortion {
    hash.update(data: ciphertext)
    let portion = RNCryptorPortion(byteCount: ciphertext.count, isLast: isLast, key: key, iv: iv)
    iv = Array(ciphertext.suffix(BlockChaining.blockSize))
    return portion
  }

  /// The next bytes, fewer at the end of the data.
  private static func bytes(
    _ count: Int, from read: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = try read(UnsafeMutableRawBufferPointer(buffer))
    }
  }
}
