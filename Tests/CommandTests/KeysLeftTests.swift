import CofferContainer
import CofferKeys
import CofferSystem
import Testing

/// What a key store has left of a vault when its wipe was cut.
struct KeysLeftTests {
  @Test func `keys of a wipe that was cut are keys, and are destroyed wherever the folder is`() throws {
    let desk = try Desk()
    try desk.makeVault()
    let store = FileKeyStore(path: desk.path("keys"))
    let id = try #require(Container.statedID(at: desk.path("vault")))
    // Of a vault whose wipe nobody has begun nothing goes.
    #expect(try !Container.destroyKeysLeft(of: id, in: store))
    #expect(try Container.hasKeys(of: id, in: store))
    try store.write(SecretBytes(count: 3) { $0.initializeMemory(as: UInt8.self, repeating: 0) }, as: .wiped, of: id)
    #expect(try Container.hasKeys(of: id, in: store))
    #expect(try desk.shell("mv vault elsewhere").code == 0)
    #expect(try Container.destroyKeysLeft(of: id, in: store))
    #expect(try !Container.hasKeys(of: id, in: store))
    #expect(try store.read(.wiped, of: id) != nil)
    // What is not there at all is no failure.
    try store.removeAll(of: id)
    #expect(try !Container.destroyKeysLeft(of: id, in: store))
    #expect(try !Container.destroyKeysLeft(of: id, in: FileKeyStore(path: desk.path("none"))))
    #expect(try !Container.hasKeys(of: id, in: FileKeyStore(path: desk.path("none"))))
  }
}
