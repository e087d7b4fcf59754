/// Why a signed document was refused. A device that refuses one keeps the policy that it has.
public enum PolicyRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// Larger than ``SignedDocument/maximumSize``.
  case oversize
  /// The part named is not as the schema says.
  case malformed(String)
  /// Another algorithm, another type of document, or members that do not belong in the header.
  case unexpectedHeader(DocumentType)
  case unsupportedSchema(Int)
  case unknownKey(DocumentType)
  case notAuthentic(DocumentType)
  /// The root key is not the one that the enrolment code names.
  case foreignRoot
  case otherTenant
  /// Meant for another device.
  case otherAudience
  /// Signed in another epoch than that of the keyset beside it.
  case otherEpoch
  case expired(DocumentType)
  /// A keyset of an epoch that the company has left, or one issued earlier in the same epoch.
  case olderKeyset(held: Int64, offered: Int64)
  /// Other keys in the same epoch.
  case changedKeyset(epoch: Int64)
  /// A revision that is not newer than one already applied.
  case olderRevision(held: Int64, offered: Int64)
  /// Another policy with the same number, or one that does not follow the policy held.
  case conflictingRevision(Int64)
  case otherNonce
  /// The status is of a newer policy than the one held: fetch that first.
  case outdated(held: Int64, current: Int64)
  /// What time it is by the company's clock is not known: its status was not asked for.
  case unconfirmed

  public var description: String {
    switch self {
    case .oversize: "The document is larger than 4 MiB."
    case .malformed(let part): "The \(part) is not as it should be."
    case .unexpectedHeader(let type): "The header of the \(type.name) is not the one that Coffer signs."
    case .unsupportedSchema(let schema): "The policy has schema \(schema), which this version of Coffer does not know."
    case .unknownKey(let type): "The \(type.name) is signed with a key that the company does not vouch for."
    case .notAuthentic(let type): "The signature of the \(type.name) is not valid: it was altered on its way."
    case .foreignRoot: "The server's root key is not the one that the enrolment code names. Someone may be in between."
    case .otherTenant: "The document is of another company."
    case .otherAudience: "The document is for another device."
    case .otherEpoch: "The document is of another epoch than the company's present keys."
    case .expired(let type): "The \(type.name) has expired. Check this device's clock, or ask your administrator."
    case .olderKeyset(let held, let offered):
      "The company's keys are those of epoch \(offered), older than those that this device holds (epoch \(held))."
    case .changedKeyset(let epoch): "The company's keys changed within epoch \(epoch)."
    case .olderRevision(let held, let offered):
      "The policy is revision \(offered), and this device has applied revision \(held)."
    case .conflictingRevision(let revision): "The policy of revision \(revision) does not fit the one that was applied."
    case .otherNonce: "The status answers another question than the one that was asked."
    case .outdated(let held, let current): "This device holds revision \(held); the company's is \(current)."
    case .unconfirmed: "The company has not confirmed its policy, so that its orders wait."
    }
  }
}
