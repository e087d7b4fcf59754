import CofferFiles
import CofferSystem
import CofferTestSupport
import CofferVault
import Testing

@Suite struct NamespaceTests {
  @Test func `names have one to 255 bytes and no slash, zero or dots alone`() throws {
    for name: [UInt8] in [[], [46], [46, 46], [97, 47], [97, 0], [UInt8](repeating: 97, count: 256)] {
      #expect(throws: InvalidName.self) { try VaultPath.root.appending(name) }
    }
    for text in ["a/../b", "..", ".", "/./a", "a/\u{0}"] { #expect(throws: InvalidName.self) { try VaultPath(text) } }
    #expect(try VaultPath("//a//b/").names == [[97], [98]])
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    let names: [[UInt8]] = [[UInt8](repeating: 0xe9, count: 255), [10], [0xff, 0xfe], [46, 46, 46]]
    for name in names { try vault.importFile(fixture.source(name), to: VaultPath.root.appending(name)) }
    #expect(try Set(vault.list(.root).map(\.name)) == Set(names))
    for name in names { #expect(try vault.contents(of: VaultPath.root.appending(name)) == name) }
    try vault.close()
  }

  @Test func `a folder of many names is listed whole and removed whole`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.makeDirectory(at: VaultPath("a/b/c"), withParents: true)
    let names = (0..<1300).map { "name \($0)" }
    for name in names { try vault.makeDirectory(at: VaultPath("a/b/\(name)")) }
    #expect(try Set(vault.list(VaultPath("a/b")).map(\.name)) == Set(names.map { Array($0.utf8) } + [[99]]))
    #expect(throws: VaultError.directoryNotEmpty) { try vault.remove(VaultPath("a/b")) }
    try vault.removeRecursively(VaultPath("a"))
    #expect(try vault.list(.root).isEmpty)
    try vault.close()
    let again = try fixture.open()
    #expect(try again.list(.root).isEmpty)
    try again.close()
  }

  @Test func `settings are kept, replaced, listed and removed`() throws {
    let fixture = try VaultFixture()
    let vault = try fixture.create()
    try vault.setSetting("app.one", to: [1])
    try vault.setSetting("app.two", to: [UInt8](repeating: 2, count: 100_000))
    try vault.setSetting("other", to: [])
    try vault.setSetting("app.one", to: [3])
    try vault.close()
    let again = try fixture.open()
    #expect(try again.setting("app.one") == [3])
    #expect(try again.setting("other") == [])
    #expect(try again.setting("absent") == nil)
    #expect(try again.settingNames(prefix: "app.") == ["app.one", "app.two"])
    try again.setSetting("app.two", to: nil)
    #expect(try again.settingNames(prefix: "") == ["app.one", "other"])
    try again.close()
  }
}
