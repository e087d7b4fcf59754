/// The parts of the console, as the navigation has them.
enum Place: CaseIterable, Sendable {
  case overview, apps
  case rules, simulator, drafts, revisions, fileTypes, classifications, settings
  case devices, groups, enrolment
  case audit
  case people, keys
  case account

  var name: String {
    switch self {
    case .overview: "Overview"
    case .apps: "Apps"
    case .rules: "Rules"
    case .simulator: "Simulator"
    case .drafts: "Drafts"
    case .revisions: "Revisions"
    case .fileTypes: "File types"
    case .classifications: "Classifications"
    case .settings: "Settings"
    case .devices: "Devices"
    case .groups: "Groups"
    case .enrolment: "Enrolment"
    case .audit: "Audit"
    case .people: "People and tokens"
    case .keys: "Keys"
    case .account: "Your account"
    }
  }

  var link: Link {
    switch self {
    case .overview: "/console"
    case .apps: "/console/apps"
    case .rules: "/console/rules"
    case .simulator: "/console/simulator"
    case .drafts: "/console/drafts"
    case .revisions: "/console/revisions"
    case .fileTypes: "/console/file-types"
    case .classifications: "/console/classifications"
    case .settings: "/console/settings"
    case .devices: "/console/devices"
    case .groups: "/console/groups"
    case .enrolment: "/console/enrolment"
    case .audit: "/console/audit"
    case .people: "/console/people"
    case .keys: "/console/keys"
    case .account: "/console/account"
    }
  }

  /// What somebody needs to see it.
  var permission: Permission? {
    switch self {
    case .overview, .apps, .rules, .simulator, .drafts, .revisions, .fileTypes, .classifications, .settings, .keys:
      .readPolicy
    case .devices, .groups, .enrolment: .readDevices
    case .audit: .readAudit
    case .people: .readAccounts
    case .account: nil
    }
  }
}

/// What belongs together. Few, so that the navigation is one line.
enum Area: CaseIterable, Sendable {
  case overview, apps, policy, devices, audit, company, account

  var places: [Place] {
    switch self {
    case .overview: [.overview]
    case .apps: [.apps]
    case .policy: [.rules, .simulator, .drafts, .revisions, .fileTypes, .classifications, .settings]
    case .devices: [.devices, .groups, .enrolment]
    case .audit: [.audit]
    case .company: [.people, .keys]
    case .account: [.account]
    }
  }

  /// An area of one place is called as the place is.
  func name(of places: [Place]) -> String {
    switch self {
    case .policy: "Policy"
    case .company: "Company"
    default: places[0].name
    }
  }
}
