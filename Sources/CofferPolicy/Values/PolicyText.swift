/// What the texts of a policy may look like. Names reach terminals and pages, so control characters are refused here.
public enum PolicyText {
  /// Ids of tenants, devices, rules, groups and approvals: 1 to 128 of `A-Z a-z 0-9 . _ -`. No colon, so that no rule
  /// can pass for an approval or a setting in a decision.
  public static func isIdentifier(_ text: String) -> Bool {
    (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { isAlphanumeric($0) || ".-_".utf8.contains($0) }
  }

  /// A name for people: 1 to 200 bytes, no control characters.
  public static func isName(_ text: String) -> Bool {
    (1...200).contains(text.utf8.count)
      && !text.unicodeScalars.contains { scalar in
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: true
        default: false
        }
      }
  }

  /// A file name extension as policy has it: 1 to 32 of `a-z 0-9 + - _`.
  public static func isExtension(_ text: String) -> Bool {
    (1...32).contains(text.utf8.count)
      && text.utf8.allSatisfy { isAlphanumeric($0) && !(65...90).contains($0) || "+-_".utf8.contains($0) }
  }

  /// A bundle id and a team id, each of at most 155 bytes.
  public static func isApp(_ app: AppIdentity) -> Bool {
    [app.bundleId, app.teamId].allSatisfy { text in
      (1...155).contains(text.utf8.count) && text.utf8.allSatisfy { isAlphanumeric($0) || ".-_".utf8.contains($0) }
    }
  }

  /// A version that rules can compare: one to four numbers with dots between them.
  public static func isVersion(_ text: String) -> Bool { Version(text) != nil }

  static func isMediaType(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return parts.count == 2 && text.utf8.count <= 128
      && parts.allSatisfy { part in
        !part.isEmpty && part.allSatisfy { isAlphanumeric($0) && !(65...90).contains($0) || ".+-_".utf8.contains($0) }
      }
  }

  /// SHA-256 in lower-case hexadecimal.
  static func isDigest(_ text: String) -> Bool {
    text.utf8.count == 64 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  static func isSet(_ values: [some Hashable]) -> Bool { Set(values).count == values.count }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
  }
}
