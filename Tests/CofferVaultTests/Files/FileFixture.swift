import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Synchronization

extension OpenFile {
  func write(_ bytes: [UInt8], at offset: UInt64) throws {
    try bytes.withUnsafeBytes { raw in Result { try write(raw, at: offset) } }.get()
  }

  func append(_ bytes: [UInt8]) throws -> (offset: UInt64, count: Int) {
    try writeSome(bytes, at: nil)
  }

  func writeSome(_ bytes: [UInt8], at offset: UInt64?) throws -> (offset: UInt64, count: Int) {
    try bytes.withUnsafeBytes { raw in Result { try writeSome(raw, at: offset) } }.get()
  }

  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xaa, count: count)
    let length = try bytes.withUnsafeMutableBytes { raw in Result { try read(at: offset, into: raw) } }.get()
    return Array(bytes[..<length])
  }
}

extension FileSnapshot {
  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xaa, count: count)
    let length = try bytes.withUnsafeMutableBytes { raw in Result { try read(at: offset, into: raw) } }.get()
    return Array(bytes[..<length])
  }
}

extension VaultFixture {
  /// Bytes that all objects take on the disk.
  func objectSpace() throws -> UInt64 {
    try TamperTests.objects(vaultPath).reduce(0) { total, url in
      total + (try FileSystem().open(url.path, .readOnly).status().allocatedByteCount)
    }
  }
}

/// Counts calls, and makes those of one kind fail while it is armed.
final class CallLog: FaultPlan {
  private let state = Mutex<(calls: [SystemCall: Int], failing: SystemCall?, left: Int)>(([:], nil, 0))

  func willCall(_ call: SystemCall) throws(SystemError) {
    let fails = state.withLock { state in
      state.calls[call, default: 0] += 1
      guard state.failing == call, state.left > 0 else { return false }
      state.left -= 1
      return true
    }
    if fails { throw SystemError(code: EIO, call: call.rawValue) }
  }

  func count(_ call: SystemCall) -> Int { state.withLock { $0.calls[call] ?? 0 } }

  func fail(_ call: SystemCall, times: Int) {
    state.withLock { state in
      state.failing = call
      state.left = times
    }
  }
}
