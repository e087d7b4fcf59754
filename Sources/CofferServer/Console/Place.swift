/// The parts of the console, as the navigation has them.
enum Place: CaseIterable, Sendable {
  case overview, apps, rules, devices, enrolment, settings, audit, people, account

  var name: String {
    switch self {
    case .overview: "Overview"
    case .apps: "Apps"
    case .rules: "Rules"
    case .devices: "Devices"
    case .enrolment: "Enrolment"
    case .settings: "Settings"
    case .audit: "Audit"
    case .people: "People and tokens"
    case .account: "Your account"
    }
  }

  var link: Link {
    switch self {
    case .overview: "/console"
    case .apps: "/console/apps"
    case .rules: "/console/rules"
    case .devices: "/console/devices"
    case .enrolment: "/console/enrolment"
    case .settings: "/console/settings"
    case .audit: "/console/audit"
    case .people: "/console/people"
    case .account: "/console/account"
    }
  }

  /// What somebody needs to see it.
  var permission: Permission? {
    switch self {
    case .overview, .apps, .rules, .settings: .readPolicy
    case .devices, .enrolment: .readDevices
    case .audit: .readAudit
    case .people: .readAccounts
    case .account: nil
    }
  }
}

/// What a page says of a change that has just been made.
enum Notice: String, CaseIterable, Sendable {
  case requested, approved
  case halfApproved = "half-approved"
  case changed, revoked, removed
  case ruleAdded = "rule-added"
  case
    ruleRemoved = "rule-removed"
  case saved, ordered, cancelled
  case deviceRemoved = "device-removed"
  case codeRevoked =
    "code-revoked"
  case invitationRevoked = "invitation-revoked"
  case tokenRevoked = "token-revoked"
  case
    passwordChanged = "password-changed"
  case signedOut = "signed-out"
  case factorAdded = "factor-added"
  case
    factorRemoved = "factor-removed"

  var sentence: String {
    switch self {
    case .requested: "The app is requested. Nothing is let out to it until it is approved."
    case .approved: "The app is approved. Connected devices fetch the new policy now."
    case .halfApproved: "Your approval is noted. A second person has to approve it, too."
    case .changed: "The change is saved."
    case .revoked: "The app is revoked. Connected devices fetch the new policy now."
    case .removed: "It is removed."
    case .ruleAdded: "The rule is in force. Connected devices fetch the new policy now."
    case .ruleRemoved: "The rule is gone. Connected devices fetch the new policy now."
    case .saved: "The settings are saved. Connected devices fetch the new policy now."
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
