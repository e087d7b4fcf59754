import CofferKeys
import CofferSystem
import CofferTestSupport
import Foundation
import Synchronization
import Testing

@Suite struct FileKeyStoreTests {
  private func secret(_ bytes: [UInt8]) -> SecretBytes { bytes.withUnsafeBytes { SecretBytes(copying: $0) } }
  private func bytes(_ secret: SecretBytes?) -> [UInt8]? { secret.map { $0.withUnsafeBytes { Array($0) } } }

  @Test func `what was written is read, for its own vault only`() throws {
    let folder = try TemporaryFolder()
    let store = FileKeyStore(path: folder("a/b/keys"))
    let (one, two) = (VaultID(), VaultID())
    #expect(try store.read(.deviceSecret, of: one) == nil)
    for item in KeyStoreItem.allCases {
      try store.write(secret(Array(item.rawValue.utf8)), as: item, of: one)
      try store.write(secret([1]), as: item, of: two)
      try store.write(secret([2]), as: item, of: two)
    }
    let again = FileKeyStore(path: folder("a/b/keys"))
    for item in KeyStoreItem.allCases {
      #expect(try bytes(again.read(item, of: one)) == Array(item.rawValue.utf8))
      #expect(try bytes(again.read(item, of: two)) == [2])
    }
    try again.removeAll(of: one)
    for item in KeyStoreItem.allCases {
      #expect(try again.read(item, of: one) == nil)
      #expect(try bytes(again.read(item, of: two)) == [2])
    }
    let left = try FileManager.default.subpathsOfDirectory(atPath: folder("a/b/keys")).sorted()
    #expect(left == [two.description] + KeyStoreItem.allCases.map { "\(two)/\($0.rawValue)" }.sorted())
  }

  @Test func `a store that others may enter or read is refused`() throws {
    let folder = try TemporaryFolder()
    let id = VaultID()
    let store = FileKeyStore(path: folder("keys"))
    try store.write(secret([1]), as: .deviceSecret, of: id)
    for path in ["keys", "keys/\(id)", "keys/\(id)/device-secret"] {
      let before = try #require(try FileSystem().status(of: folder(path)))
      for permissions: UInt16 in [0o040, 0o004, 0o020, 0o001] {
        try FileManager.default.setAttributes(
          [.posixPermissions: before.permissions | permissions], ofItemAtPath: folder(path))
        #expect(throws: KeyStoreError.exposed) { try store.read(.deviceSecret, of: id) }
      }
      try FileManager.default.setAttributes([.posixPermissions: before.permissions], ofItemAtPath: folder(path))
    }
    #expect(try bytes(store.read(.deviceSecret, of: id)) == [1])
  }

  @Test func `links, folders and giants in place of an item are refused`() throws {
    let folder = try TemporaryFolder()
    let id = VaultID()
    let store = FileKeyStore(path: folder("keys"))
    try store.write(secret([1]), as: .deviceSecret, of: id)
    let item = folder("keys/\(id)/device-secret")
    try FileManager.default.moveItem(atPath: item, toPath: folder("elsewhere"))
    try FileManager.default.createSymbolicLink(atPath: item, withDestinationPath: folder("elsewhere"))
    #expect(throws: KeyStoreError.self) { try store.read(.deviceSecret, of: id) }
    try FileManager.default.removeItem(atPath: item)
    try FileManager.default.createDirectory(
      atPath: item, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    #expect(throws: KeyStoreError.damaged(.deviceSecret)) { try store.read(.deviceSecret, of: id) }
    try FileManager.default.removeItem(atPath: item)
    let giant = try FileSystem().open(item, [.writeOnly, .createNew])
    try giant.truncate(to: 1 << 40)
    #expect(throws: KeyStoreError.damaged(.deviceSecret)) { try store.read(.deviceSecret, of: id) }
  }

  /// To open a pipe waits for somebody at its other end.
  @Test(.timeLimit(.minutes(10))) func `a pipe in place of an item or the lock keeps nobody waiting`() throws {
    let folder = try TemporaryFolder()
    let id = VaultID()
    let store = FileKeyStore(path: folder("keys"))
    try store.write(secret([1]), as: .deviceSecret, of: id)
    func putPipe(_ name: String) throws {
      let path = folder("keys/\(id)/\(name)")
      try? FileManager.default.removeItem(atPath: path)
      try #require(mkfifo(path, 0o600) == 0)
    }
    for item in KeyStoreItem.allCases {
      try putPipe(item.rawValue)
      #expect(throws: KeyStoreError.damaged(item)) { try store.read(item, of: id) }
      try store.write(secret([2]), as: item, of: id)
      #expect(try bytes(store.read(item, of: id)) == [2])
      try putPipe(item.rawValue)
    }
    try putPipe("lock")
    #expect(try store.withLock(of: id) { true })
    try store.removeAll(of: id, keeping: [])
    #expect(try store.read(.deviceSecret, of: id) == nil)
  }

  @Test func `the lock holds between threads and stores, and needs something that is kept`() throws {
    let folder = try TemporaryFolder()
    let id = VaultID()
    let store = FileKeyStore(path: folder("keys"))
    #expect(throws: KeyStoreError.nothingKept) { try store.withLock(of: id) {} }
    try store.write(secret([0]), as: .attempts, of: id)
    let inside = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<20 {
        #expect(throws: Never.self) {
          // A store of its own each time, as another process has.
          let store = FileKeyStore(path: folder("keys"))
          try store.withLock(of: id) {
            #expect(inside.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue == 1)
            let count = try bytes(store.read(.attempts, of: id))?.first ?? 0
            try store.write(secret([count + 1]), as: .attempts, of: id)
            inside.wrappingSubtract(1, ordering: .sequentiallyConsistent)
          }
        }
      }
    }
    #expect(try bytes(store.read(.attempts, of: id)) == [160])
    try store.removeAll(of: id)
    #expect(throws: KeyStoreError.nothingKept) { try store.withLock(of: id) {} }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder("keys")) == [])
  }

  /// No room for another file.
  private struct FullDisk: FaultPlan {
    func willCall(_ call: SystemCall) throws(SystemError) {
      if call == .rename { throw SystemError(code: 28, call: "rename") }
    }
  }

  @Test func `on a full disk attempts of the same length are written all the same, and nothing else is`() throws {
    let folder = try TemporaryFolder()
    let id = VaultID()
    let store = FileKeyStore(path: folder("keys"))
    for item in KeyStoreItem.allCases { try store.write(secret([1, 2]), as: item, of: id) }
    let full = FileKeyStore(path: folder("keys"), files: FileSystem(faults: FullDisk()))
    for item in KeyStoreItem.allCases {
      if item == .attempts {
        try full.write(secret([3, 4]), as: item, of: id)
        #expect(throws: KeyStoreError.self) { try full.write(secret([5]), as: item, of: id) }
        #expect(try bytes(store.read(item, of: id)) == [3, 4])
      } else {
        #expect(throws: KeyStoreError.self) { try full.write(secret([3, 4]), as: item, of: id) }
        #expect(try bytes(store.read(item, of: id)) == [1, 2])
      }
    }
  }
}
