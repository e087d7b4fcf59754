import CofferCrypto
import CofferFiles
import CofferSystem
import Testing

@testable import CofferVault

/// Row keys, buckets' hashes and padding as FileFormat.md says, written down here a second time: a mistake that agrees with
/// itself would read back what it wrote, and would find nothing in vaults that are there.
@Suite struct RowFormatTests {
  private let metadataKey = SecretKey()
  private let numbers: [UInt64] = [1, 63, 64, 65, 4_096, 1 << 32 + 7, .max >> 1]
  /// Of every length from 1 to the limit, with bytes of every value.
  private let names = (1...VaultPath.nameLimit).map { count in
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ count) }
  }

  /// `F(kind, bytes)[count]`.
  private func expected(_ kind: String, _ bytes: [UInt8], _ count: Int) -> [UInt8] {
    let code = MessageAuthentication.code(
      for: [UInt8(kind.utf8.count)] + Array(kind.utf8) + bytes, key: metadataKey.derived("row keys"))
    return Array(code.prefix(count))
  }

  /// `N(kind, bytes)`.
  private func expectedName(_ kind: String, _ bytes: [UInt8]) -> [UInt8] {
    var hash = expected(kind, bytes, 8)
    hash[0] = hash[0] & 0b0011_1111 | 0b0100_0000
    hash[7] = 0
    return hash
  }

  @Test func `numbers make the keys of the format`() {
    var keys = RowKeys(metadataKey: metadataKey)
    for value in numbers {
      let number = InodeNumber(value: value)
      let bytes = value.bigEndianBytes
      #expect(keys.inode(number).bytes == expected("inode", (value / 64).bigEndianBytes, 15) + [UInt8(value % 64)])
      #expect(keys.pending(number).bytes == expected("pending", [], 8) + bytes)
      #expect(keys.deposit(number).bytes == expected("deposit", [], 8) + bytes)
      #expect(keys.attributePrefix(number).high.bigEndianBytes == expected("attributes", bytes, 8))
      #expect(keys.entryPrefix(parent: number).high.bigEndianBytes == expected("folder", bytes, 8))
      for other in numbers {
        #expect(
          keys.mapPage(number, other).bytes
            == expected("map", bytes + (other / 64).bigEndianBytes, 15) + [UInt8(other % 64)])
        #expect(keys.mapDirectory(number, other).bytes == expected("map directory", bytes + other.bigEndianBytes, 16))
      }
      let place = keys.objectPlace(value)
      #expect(place.folder + place.name == expected("object", bytes, 16).hexadecimal)
      #expect(place.folder.utf8.count == 2)
    }
  }

  @Test func `names make the keys of the format`() {
    var keys = RowKeys(metadataKey: metadataKey)
    for (name, value) in zip(names, (0...).lazy.map { numbers[$0 % numbers.count] }) {
      let number = InodeNumber(value: value)
      let bytes = value.bigEndianBytes
      #expect(
        keys.entry(parent: number, name: name).bytes
          == expected("folder", bytes, 8) + expectedName("name", bytes + name))
      #expect(
        keys.attribute(number, name: name).bytes
          == expected("attributes", bytes, 8) + expectedName("attribute", bytes + name))
    }
    let setting = "device-key"
    #expect(keys.setting(setting).bytes == expected("settings", [], 8) + expected("setting", Array(setting.utf8), 8))
    #expect(keys.settingPrefix.high.bigEndianBytes == expected("settings", [], 8))
  }

  @Test(arguments: RecordTable.allCases)
  func `a bucket counts a row by the hash of the format`(_ table: RecordTable) throws {
    let hasher = RowHasher(metadataKey: metadataKey)
    for _ in 0..<100 {
      let key = Randomness.bytes(16)
      let tag = Randomness.bytes(16)
      let row = try #require(key.withUnsafeBytes { RowKey($0) })
      let hash = hasher.hash(table, row, try #require(tag.withUnsafeBytes { RowTag(endOf: $0) }))
      #expect(
        (0..<4).flatMap { hash[$0].bigEndianBytes }
          == MessageAuthentication.code(for: [table.rawValue] + key + tag, key: metadataKey.derived("buckets")))
    }
  }

  @Test func `a record's bytes stand behind their count, and zeros follow up to the step`() throws {
    for count in 0...1_600 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 | 1) }
      let padded = Padding.pad(bytes)
      let step = count < 512 ? 64 : 512
      #expect(padded.count % step == 0 && padded.count - step < count + 4)
      #expect(padded == UInt32(count).bigEndianBytes + bytes + Array(repeating: 0, count: padded.count - count - 4))
      #expect(try Padding.unpad(padded) == bytes)
    }
  }
}
