/// What a page says of a change that has just been made.
enum Notice: String, CaseIterable, Sendable {
  case requested
  case approved
  case halfApproved = "half-approved"
  case changed
  case revoked
  case removed
  case ruleAdded = "rule-added"
  case ruleChanged = "rule-changed"
  case ruleRemoved = "rule-removed"
  case policyChanged = "policy-changed"
  case draftMade = "draft-made"
  case draftChanged = "draft-changed"
  case draftRemoved = "draft-removed"
  case published
  case restored
  case groupsChanged = "groups-changed"
  case groupsAsked = "groups-asked"
  case rotated
  case delegated
  case saved
  case ordered
  case cancelled
  case deviceRemoved = "device-removed"
  case codeRevoked = "code-revoked"
  case invitationRevoked = "invitation-revoked"
  case tokenRevoked = "token-revoked"
  case passwordChanged = "password-changed"
  case signedOut = "signed-out"
  case factorAdded = "factor-added"
  case factorRemoved = "factor-removed"

  private static let fetched = "Connected devices are told to fetch the new policy."

  var sentence: String {
    switch self {
    case .requested: "The app is requested. Nothing is let out to it until it is approved."
    case .approved: "The app is approved. \(Self.fetched)"
    case .halfApproved: "Your approval is noted. A second person has to approve it, too."
    case .changed: "The change is saved."
    case .revoked: "The app is revoked. \(Self.fetched)"
    case .removed: "It is removed."
    case .ruleAdded: "The rule is in force. \(Self.fetched)"
    case .ruleChanged: "The rule is in force as it stands here. \(Self.fetched)"
    case .ruleRemoved: "The rule is gone. \(Self.fetched)"
    case .policyChanged: "The policy is changed. \(Self.fetched)"
    case .draftMade: "The draft is made. Nothing of it holds until it is published."
    case .draftChanged: "The draft is changed. Nothing of it holds until it is published."
    case .draftRemoved: "The draft is discarded. What is in force is as it was."
    case .published: "The draft is in force now, as the newest revision. \(Self.fetched)"
    case .restored: "What that revision said is in force again, as the newest revision. \(Self.fetched)"
    case .groupsChanged: "The groups are saved."
    case .groupsAsked: "Your change of the groups is noted. Another administrator makes it on the device’s page."
    case .rotated: "There is a new signing key, in a new epoch. The policy is signed anew."
    case .delegated: "The root key has signed the delegation."
    case .saved: "The settings are saved. \(Self.fetched)"
    case .ordered: "The order is signed and waits for the device."
    case .cancelled: "The order is taken back. A device that fetched it already may still carry it out."
    case .deviceRemoved: "The device is removed. It can fetch nothing any more."
    case .codeRevoked: "The enrolment code is withdrawn."
    case .invitationRevoked: "The invitation is withdrawn."
    case .tokenRevoked: "The token is withdrawn. Whatever uses it is refused from now on."
    case .passwordChanged: "Your password is changed. Sign in with the new one."
    case .signedOut: "You are signed out."
    case .factorAdded: "From now on, signing in asks for a one-time code."
    case .factorRemoved: "Signing in asks for no one-time code any more."
    }
  }
}
