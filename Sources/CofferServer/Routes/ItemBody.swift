internal import CofferAPI
internal import CofferPolicy

/// What a client sends to make or change an item: an `ItemDraft`, and perhaps an `id`.
///
/// Extensions come with or without a leading dot and in any case; they are kept, shown and signed in lower case without
/// it. An `id` may be sent: the server gives a new item another, and a changed item must have the path's.
struct ItemBody: StrictBody {
  enum CodingKeys: String, CodingKey, CaseIterable {
    case id, name, bundleId, teamId, teamKey, extensions, actions
  }

  let id: String?
  private let draft: ItemDraft

  init(from decoder: any Decoder) throws {
    id = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(String.self, forKey: .id)
    draft = try ItemDraft(from: decoder)
  }

  /// Throws a problem that names the field that is not valid.
  func approval(id: String) throws -> AppApproval {
    do {
      return try draft.approval(id: id)
    } catch {
      throw HTTPProblem.invalid(error.member, error.reason)
    }
  }
}
