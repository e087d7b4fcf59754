internal import CofferPolicy
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

/// A company's audit: read, exported, and signed for whoever keeps a checkpoint.
extension PolicyServer {
  private struct EntryView: Encodable {
    let number: Int64
    let hash: String
    /// The entry's exact bytes, which the hash is of.
    let entry: String
  }

  @Sendable func listAudit(_ call: Call, _ caller: Caller) async throws -> Response {
    let request = try PageRequest(call, caller, sealing)
    let records = try await store.read {
      try $0.auditRecords(tenant: caller.tenant, after: request.after, limit: request.limit + 1)
    }
    return .json(
      try request.page(of: records.map { (number: $0.number, value: $0) }) {
        EntryView(number: $0.number, hash: $0.hash.hexadecimal, entry: String(decoding: $0.entry, as: UTF8.self))
      })
  }

  @Sendable func showCheckpoint(_ call: Call, _ caller: Caller) async throws -> Response {
    let (tenant, last) = try await store.read { transaction in
      (
        try found(transaction.tenant(id: caller.tenant)), try transaction.lastAuditRecord(tenant: caller.tenant)
      )
    }
    return .json(["checkpoint": try publisher.checkpoint(tenant, last).document.text, "keyset": tenant.keys.keyset])
  }

  /// The whole audit with a signed end, as `coffer-server audit verify` reads it. In portions, so that no length of it
  /// takes more memory or holds the store up.
  @Sendable func exportAudit(_ call: Call, _ caller: Caller) async throws -> Response {
    let (tenant, last) = try await commit(caller) { change in
      try change.record(.auditExported)
      return (
        try found(change.transaction.tenant(id: caller.tenant)),
        try change.transaction.lastAuditRecord(tenant: caller.tenant)
      )
    }
    let checkpoint = try publisher.checkpoint(tenant, last)
    let body = ResponseBody.later { writer in
      try await writer.write(ByteBuffer(bytes: AuditExport.header(tenant)))
      var number: Int64 = 0
      let end = checkpoint.checkpoint.number
      while number < end {
        let (after, limit) = (number, Int(min(500, end - number)))
        let records = try await store.read {
          try $0.auditRecords(tenant: caller.tenant, after: after, limit: limit)
        }
        guard let newest = records.last?.number else { throw StoreError.damaged("the audit") }
        try await writer.write(ByteBuffer(bytes: records.flatMap(AuditExport.line)))
        number = newest
      }
      try await writer.write(ByteBuffer(bytes: AuditExport.footer(checkpoint)))
      try await writer.finish(nil)
    }
    return Response(
      status: .ok,
      headers: [
        .contentType: Route.Answer.lines.rawValue, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        .contentDisposition: #"attachment; filename="audit.jsonl""#,
      ], body: body)
  }
}
