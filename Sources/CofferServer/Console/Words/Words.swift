internal import CofferPolicy
internal import Foundation

/// The console's words for what policy, devices and the audit call by short names.
enum Words {
  static func action(_ action: Action) -> (name: String, meaning: String) {
    switch action {
    case .view: ("View", "Read the file in an app.")
    case .edit: ("Edit in place", "Change the file while the vault keeps it.")
    case .openIn: ("Open in", "Give an app a copy of its own.")
    case .share: ("Share", "Hand the file to a share extension.")
    case .saveCopy: ("Save a copy", "Write a copy outside the vault, where Coffer protects it no longer.")
    case .mount: ("Mount", "Show the vault as a folder that every program of the person can read.")
    case .copyInternal: ("Copy inside", "Copy between folders of the vault. Nothing leaves it.")
    case .import: ("Import", "Bring a file into the vault.")
    case .print: ("Print", "Send the file to a printer.")
    case .pasteOut: ("Paste out", "Paste text from the vault into another app.")
    case .pasteIn: ("Paste in", "Paste text from another app into the vault.")
    case .screenshot: ("Screenshot", "Take a picture of what is shown.")
    }
  }

  static func actions(_ actions: [Action]) -> String {
    actions.isEmpty ? "nothing" : actions.map { action($0).name.lowercased() }.joined(separator: ", ")
  }

  /// What a device does of all that rules can be about.
  static let askedActions =
    "The program coffer asks before it imports, saves a copy, opens in an app and mounts. The other actions count where "
    + "an app that has Coffer built in asks for them."

  /// What a device that has said nothing may mean.
  static let notReported =
    "The device has not said anything of itself, and has carried out no order. It does both while its vault is unlocked "
    + "there with coffer unlock and this server can be reached."

  static let shortName = "Rules name it by this. Letters, digits, dots and hyphens; it cannot be changed."

  static let aboutGroups =
    "A device learns its groups when it asks the server. Until it has, it refuses what a rule about groups might forbid."

  static let withoutClassifications =
    "Programs give files no classification yet: on a device, no file has one, whatever stands here."

  static func tier(_ tier: Tier) -> (name: String, meaning: String) {
    switch tier {
    case .enforced:
      (
        "Enforced",
        "The app runs confined, or reads only through a key that it proved to have: it cannot pass files on. No device "
          + "can do that yet, so that such an app gets nothing."
      )
    case .mediated:
      (
        "Mediated",
        "The device verifies the app and puts a copy into its folder. It does not keep the person’s other programs out of "
          + "that folder, and does not see what the app does with the copy."
      )
    case .filtered:
      (
        "Filtered",
        "Only the app's name is known, and a name proves nothing. Such apps get nothing unless the settings allow it."
      )
    }
  }

  static func state(_ state: AppRecord.State) -> String {
    switch state {
    case .requested: "Requested"
    case .approved: "Approved"
    case .revoked: "Revoked"
    }
  }

  static func role(_ role: Role) -> String {
    switch role {
    case .owner: "owner"
    case .editor: "editor"
    case .auditor: "auditor"
    }
  }

  static func meaning(of role: Role) -> String {
    switch role {
    case .owner: "Everything, with administrators, tokens and keys."
    case .editor: "Apps, rules, settings and devices."
    case .auditor: "Reads everything but changes nothing."
    }
  }

  static func meaning(of permission: Permission) -> String {
    switch permission {
    case .readPolicy: "Reads apps, rules, settings, drafts and revisions."
    case .changePolicy: "Changes them, and approves apps."
    case .readDevices: "Reads devices, groups, orders, decisions and logs."
    case .manageDevices: "Makes enrolment codes, gives orders, wipes and removes devices."
    case .readAudit: "Reads and exports the audit."
    case .readAccounts: "Reads administrators, invitations and tokens."
    case .manageAccounts: "Invites, changes and removes them."
    case .manageKeys: "Changes and delegates keys."
    }
  }

  static func protection(_ level: ProtectionLevel) -> String {
    switch level {
    case .none: "None"
    case .untilFirstUnlock: "Until the first unlock"
    case .completeUnlessOpen: "Complete unless open"
    case .complete: "Complete"
    }
  }

  static func command(_ kind: DeviceCommand.Kind) -> (name: String, meaning: String) {
    switch kind {
    case .lock: ("Lock", "Takes the keys from memory. The person unlocks with the passcode.")
    case .wipe: ("Wipe", "Destroys the vault's keys. Nobody can read the files again.")
    case .clearPasscode:
      (
        "Clear the passcode",
        "Lets the person set a new passcode within an hour, with a code that you tell them. Needs a clearing, below."
      )
    case .refresh: ("Refresh", "Fetches the policy and reports.")
    case .uploadLog: ("Upload the log", "Sends the device's log, with private values masked.")
    }
  }

  static func kind(_ kind: ResourceKind) -> String {
    switch kind {
    case .rule: "rule"
    case .classification: "classification"
    case .group: "group of devices"
    case .draft: "draft"
    case .fileType: "file type"
    case .deviceGroups: "request for a device’s groups"
    }
  }

  /// Why a policy decided as it did, for a person.
  static func rule(_ id: String) -> String {
    switch id {
    case "default": "nothing allows it, and what nothing allows is refused"
    case "grace": "the time that a device may go without news is over"
    case "content": "what the file is"
    case let id where id.hasPrefix("settings:"): "the settings"
    case let id where id.hasPrefix("app:"): "the app's approval"
    case let id where id.hasPrefix("minimum-version."): "the app's oldest version"
    default: "rule \(id)"
    }
  }

  static func field(_ name: String) -> String {
    switch name.prefix(while: \.isLetter) {
    case "extensions": "File types"
    case "extension": "File type"
    case "mediaTypes": "What its content is"
    case "effect": "What it does"
    case "osFrom": "Operating system, this version or newer"
    case "osBelow": "Operating system, older than"
    case "appFrom": "App, this version or newer"
    case "appBelow": "App, older than"
    case "age": "Time since the device heard of the server"
    case "days": "Days"
    case "from": "From"
    case "to": "To"
    case "offset": "The company’s clock, ahead of UTC"
    case "again": "The same again"
    case "key": "The public key"
    case "bundleId": "Bundle id"
    case "teamId": "Team id"
    case "teamKey": "Team key"
    case "minimumVersion": "Oldest version"
    case "expiresAt": "Ends on"
    case "expiresIn": "Valid for"
    case "ownerActions": "What the person may do"
    case "warnAfter": "Warn the person after"
    case "blockAfter": "Refuse everything after"
    case "servers": "Names of the file servers"
    case let name where ManagedSettings.Key(rawValue: String(name)) != nil: SettingWords.name(String(name))
    case "id": "Name"
    case let name: name.prefix(1).uppercased() + name.dropFirst()
    }
  }

  static func explanation(of problem: HTTPProblem) -> String {
    switch problem.name {
    case .notFound: "It does not exist, or it was removed meanwhile."
    case .forbidden where Permission.allCases.contains { HTTPProblem.forbidden($0).detail == problem.detail }:
      "\(problem.detail) Your role does not include it. Ask an owner of your company."
    case .crossSite: "The form did not come from a page of your session. Open the page again, and repeat it there."
    case .preconditionFailed, .preconditionRequired:
      "Somebody changed it meanwhile. This page shows it as it is now, without your change: look at it, and repeat that."
    case .unavailable: "The server cannot reach its store. Nothing was changed. Try again in a few seconds."
    case .tooManyRequests: "There were too many attempts. \(problem.detail)"
    case .internalError: "The server failed. Its log says more."
    default: problem.detail
    }
  }

  /// A time in UTC, as people and programs read it.
  static func time(_ seconds: Int64) -> HTML {
    Tag.time(.dateTime(Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601))) { moment(seconds) }
  }

  /// The same as a text.
  static func moment(_ seconds: Int64) -> String {
    let text = Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
  }

  /// How long ago something was, roughly.
  static func ago(_ seconds: Int64, now: Int64) -> String {
    switch now - seconds {
    case ..<90: "just now"
    case let age where age < 5400: "\(age / 60) minutes ago"
    case let age where age < 129_600: "\(age / 3600) hours ago"
    case let age: "\(age / 86_400) days ago"
    }
  }

  /// A day as forms send it, at its end in UTC. Nil for what is none.
  static func endOfDay(_ text: String) -> Int64? {
    guard let date = try? Date("\(text)T23:59:59Z", strategy: .iso8601) else { return nil }
    return Int64(date.timeIntervalSince1970)
  }

  static func day(_ seconds: Int64) -> String {
    String(Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601).prefix(10))
  }
}
