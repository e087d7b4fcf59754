import CofferAPI
import CofferCrypto
import CofferPolicy
import CofferServerSQLite
import CofferSystem
import Foundation
import GRDB
import HTTPTypes
import Testing

@testable import CofferServer

/// The audit: what is in it, what it is worth, and what tampering with it shows.
@Suite struct AuditTests {
  static func export(_ company: Company) async throws -> [[UInt8]] {
    let reply = try await company.harness.send(.get, "/v1/audit/export", token: company.auditor)
    #expect(reply.status == 200)
    #expect(reply.headers[.contentType] == "application/jsonl")
    return reply.body.split(separator: 10).map(Array.init)
  }

  static func verify(_ lines: [[UInt8]], witnessed: [Int64: String] = [:]) throws -> AuditVerification.Result {
    var verification = AuditVerification(witnessed: witnessed)
    for line in lines { try verification.take(line) }
    return try verification.finish()
  }

  /// What a verification of `lines` says is wrong.
  static func fault(_ lines: [[UInt8]], witnessed: [Int64: String] = [:]) -> String? {
    do {
      _ = try verify(lines, witnessed: witnessed)
      return nil
    } catch {
      return "\(error)"
    }
  }

  /// A company in which a few things were done.
  static func company() async throws -> Company {
    let company = try await Harness().company()
    for index in 0..<5 { _ = try await company.add("app\(index)") }
    return company
  }

  @Test func `an export is what was recorded, and verifies without the server`() async throws {
    let company = try await Self.company()
    let lines = try await Self.export(company)
    let result = try Self.verify(lines)
    #expect(result.tenant == company.tenant.id)
    #expect(result.rootFingerprint == company.tenant.keys.root.fingerprint.hexadecimal)
    #expect(Int(result.entries) == lines.count - 2)
    let entries = try await company.auditEntries()
    #expect(entries.map(\.number) == Array(1...result.entries))
    #expect(entries.first?.action == "tenant.created" && entries.last?.action == "audit.exported")
    #expect(entries.filter { $0.action == "app.approved" }.count == 5)
    #expect(entries.filter { $0.action == "policy.published" }.map(\.subject) == (1...6).map { "\($0)" })
  }

  @Test func `each hash is that of the one before and the entry's bytes`() async throws {
    let company = try await Self.company()
    let lines = try await Self.export(company).dropFirst().dropLast()
    var previous = [UInt8](repeating: 0, count: 32)
    for line in lines {
      let text = String(decoding: line, as: UTF8.self)
      let parts = text.dropFirst(#"{"entry":"#.count).dropLast(2).components(separatedBy: #","hash":""#)
      previous = Digest.sha256(previous + Array(parts[0].utf8))
      #expect(previous.hexadecimal == parts[1])
    }
    #expect(lines.count > 10)
  }

  @Test func `the first entry that is not what it was is named`() async throws {
    let company = try await Self.company()
    let lines = try await Self.export(company)
    func changed(_ body: (inout [[UInt8]]) -> Void) -> String? {
      var copy = lines
      body(&copy)
      return Self.fault(copy)
    }
    // Every byte of the fifth entry's line.
    for index in lines[5].indices {
      let told = changed { $0[5][index] ^= 1 }
      let fault = told ?? "nothing"
      let names = ["entry 5", "entry 4 is neither", "out of place"].contains { fault.contains($0) }
      #expect(names, "byte \(index): \(fault)")
    }
    #expect(changed { $0.remove(at: 5) }?.contains("entry 5 was removed") == true)
    #expect(changed { $0.swapAt(5, 6) }?.contains("entry 5 was removed, or stands in another place") == true)
    #expect(changed { $0.insert($0[5], at: 6) }?.contains("entry 5 stands out of place") == true)
    #expect(changed { $0.remove(at: $0.count - 2) }?.contains("was removed") == true)
    #expect(changed { $0.removeLast() }?.contains("signed end is missing") == true)
    #expect(changed { $0.removeLast(3) }?.contains("signed end is missing") == true)
    #expect(changed { $0.append($0[5]) }?.contains("behind the signed end") == true)
    #expect(changed { $0.removeFirst() } != nil)
    #expect(changed { $0[0] = Array("{}".utf8) } != nil)
    #expect(Self.fault([]) != nil)
  }

  @Test func `a chain that was computed anew is not the one that was signed`() async throws {
    let company = try await Self.company()
    let lines = try await Self.export(company)
    // Somebody who may write the file leaves entry 4 out, and numbers and hashes all that follow again.
    let records = try await company.harness.store.read {
      try $0.auditRecords(tenant: company.tenant.id, after: 0, limit: 100)
    }
    var (forged, previous) = ([[UInt8]](), AuditRecord.genesis)
    for (index, record) in records.filter({ $0.number != 4 }).enumerated() {
      let text = String(decoding: record.entry, as: UTF8.self)
        .replacing(#""number":\#(record.number)"#, with: #""number":\#(index + 1)"#)
      previous = AuditRecord.hash(previous: previous, entry: Array(text.utf8))
      let line = AuditExport.line(AuditRecord(number: Int64(index + 1), entry: Array(text.utf8), hash: previous))
      forged.append(Array(line.dropLast()))
    }
    #expect(Self.fault([lines[0]] + forged + [lines[lines.count - 1]])?.contains("was removed") == true)
    // Also with as many entries as were signed.
    forged.append(forged[forged.count - 1])
    #expect(Self.fault([lines[0]] + forged + [lines[lines.count - 1]]) != nil)
    // Another company's end does not fit either.
    let other = try await Self.export(try await Self.company())
    #expect(Self.fault(lines.dropLast() + [other[other.count - 1]]) != nil)
    #expect(Self.fault([other[0]] + lines.dropFirst()) != nil)
  }

  @Test func `whoever holds the company's keys is found out by what a device has seen`() async throws {
    let company = try await Self.company()
    let device = try await company.enroll()
    let nonce = Base64URL.encode([UInt8](repeating: 7, count: 32))
    let reply = try await company.harness.send(
      .post, "/v1/device/status", token: try await device.token(), json: #"{"nonce":"\#(nonce)"}"#)
    let keyset = try SignedKeyset(verifying: device.enrollment.keyset, root: company.tenant.keys.root).keyset
    let status = try SignedStatus(verifying: reply.json(StatusResponse.self).status, keyset: keyset).status
    let mark = try #require(status.audit)
    #expect(mark.number == Int64(try await company.auditEntries().count))
    let lines = try await Self.export(company)
    #expect(Self.fault(lines, witnessed: [mark.number: mark.hash]) == nil)
    #expect(Self.fault(lines, witnessed: [mark.number: String(repeating: "0", count: 64)])?.contains("witness") == true)
    #expect(Self.fault(lines, witnessed: [999: mark.hash])?.contains("entry 999") == true)
  }

  @Test func `no statement changes or shortens it`() async throws {
    let company = try await Self.company()
    let queue = try DatabaseQueue(path: company.harness.directory.database)
    for sql in [
      "UPDATE audit SET entry = x'00'", "DELETE FROM audit", "UPDATE audit SET number = number + 1",
      "INSERT OR REPLACE INTO audit SELECT tenant, number, x'00', hash FROM audit WHERE number = 1",
    ] {
      await #expect(throws: (any Error).self) { try await queue.write { try $0.execute(sql: sql) } }
    }
    #expect(Self.fault(try await Self.export(company)) == nil)
  }

  @Test func `a change that fails is not in it, and what cannot be recorded is not done`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let before = try await company.auditEntries().count
    #expect(try await harness.send(.post, "/items", token: company.owner, json: "{}").status == 422)
    _ = try await company.add()
    #expect(try await harness.send(.post, "/items", token: company.owner, json: Company.item()).status == 409)
    #expect(try await company.auditEntries().count == before + 2)
    // The next number is taken: as if the table were damaged or the disk full.
    let next = Int64(before + 3)
    try await harness.store.write {
      try $0.append(AuditRecord(number: next + 1, entry: [1], hash: [1]), tenant: company.tenant.id)
    }
    try await DatabaseQueue(path: harness.directory.database).write { database in
      try database.execute(
        sql: """
          CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END
          """)
    }
    #expect(try await harness.send(.post, "/items", token: company.owner, json: Company.item("b")).status == 503)
    #expect(try await harness.send(.get, "/items", token: company.owner).json([Item].self).count == 1)
    #expect(try await harness.current(company.tenant).number == 2)
  }

  @Test func `it holds no password, token or code`() async throws {
    let harness = try Harness()
    let company = try await harness.company()
    let person = try await Person(company)
    _ = try await harness.send(.post, "/v1/session", json: SessionTests.body(person.email))
    let code = try await company.code()
    let made = try await harness.send(
      .post, "/v1/tokens", token: company.owner, json: #"{"name":"ci","role":"auditor","expiresIn":3600}"#)
    struct Made: Decodable { let token: String }
    let text = String(decoding: try await Self.export(company).joined(), as: UTF8.self)
    for secret in [Person.password, code.secret, try made.json(Made.self).token, person.session.text, person.email] {
      #expect(!text.contains(secret))
    }
  }
}
