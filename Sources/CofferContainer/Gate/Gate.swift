internal import CofferCrypto
internal import CofferFiles
internal import CofferKeys
internal import CofferPolicy
internal import CofferSystem
internal import CofferVault
internal import Foundation
internal import Synchronization

/// The choke point: every byte that leaves or enters a container was permitted here first.
///
/// The enrolment is sealed in the vault, and its anchor lies in the key store beside the vault's own, which says that
/// there is a company too: neither deleting one nor going back to an older copy un-enrols a device.
final class Gate: Sendable {
  static let enrolmentSetting = "enrolment"
  static let deviceKeySetting = "device-key"
  /// How far the clock goes on before the highest time seen is stored again, in seconds.
  private static let observationStep: Int64 = 15 * 60

  private let vault: Vault
  private let keyStore: any KeyStore
  private let time: any TimeSource
  /// Held while the enrolment is changed, so that no older state is stored over a newer one.
  private let changing = Mutex(())
  private let current: Mutex<EnrolmentState>
  private let lastWarning = Mutex<String?>(nil)
  /// What was decided here.
  let decisions: DecisionLog

  init(vault: Vault, keyStore: any KeyStore, time: any TimeSource) throws {
    self.vault = vault
    self.keyStore = keyStore
    self.time = time
    decisions = DecisionLog(vault)
    let state = try Self.load(vault, keyStore)
    current = Mutex(state)
    switch state {
    case .enrolled(let enrolment), .outdated(let enrolment): Self.apply(enrolment, vault)
    case .notEnrolled, .policyMissing: break
    }
  }

  /// The warning of the last decision that had one.
  var warning: String? { lastWarning.withLock { $0 } }

  var state: EnrolmentState { current.withLock { $0 } }

  private var now: Int64 { time.now().seconds }
  private var uptime: Uptime {
    let moment = time.sinceBoot()
    return Uptime(boot: moment.boot.hexadecimal, seconds: Int64(clamping: moment.seconds))
  }

  /// Throws the refusal unless policy permits.
  ///
  /// What policy refuses is recorded, and so is what lets content out, before it does: where that cannot be recorded, nothing leaves. A
  /// vault that can be read only keeps no record.
  ///
  /// - Parameters:
  ///   - file: asked for only where there is a policy, because finding out what a file is costs something.
  ///   - isRepeated: the same was permitted before, and is asked again because the policy may have changed.
  func check(
    _ actor: Request.Actor, _ action: Action, file: (() throws -> FileFacts)?, isRepeated: Bool = false
  ) throws {
    guard try enrolment() != nil else { return }
    let facts = try file?()
    // Finding that out takes long enough for the company to decide otherwise.
    guard let enrolment = try enrolment() else { return }
    let (moment, uptime) = (now, uptime)
    let request = Request(
      actor: actor, action: action, file: facts,
      principal: Principal(device: enrolment.device, groups: enrolment.groups.map(Set.init)))
    let context = DecisionContext(
      now: moment, policyAge: enrolment.age(now: moment, uptime: uptime), isDeviceUnlocked: !vault.isLocked,
      osVersion: Self.systemVersion)
    let decision = decide(request, policy: enrolment.policy, context: context)
    observe(moment, uptime)
    var failure: (any Error)?
    if !decision.isPermitted || (action.letsContentOut && !isRepeated) {
      failure = decisions.record(decision, of: request, time: moment)
    }
    if let warning = decision.warning { lastWarning.withLock { $0 = warning } }
    guard decision.isPermitted else { throw ContainerError(refusal: decision) }
    if let failure, !vault.isReadOnly { throw ContainerError(unrecorded: failure) }
  }

  /// What is decided by; nil where there is no company. Throws the refusal where there is one, and no policy to decide by.
  private func enrolment() throws -> Enrolment? {
    switch state {
    case .notEnrolled: nil
    case .outdated, .policyMissing: throw ContainerError(refusal: .withoutPolicy)
    case .enrolled(let enrolment): enrolment
    }
  }

  /// Records what is no decision, where a company has an audit.
  ///
  /// - Parameter time: when it was; nil for now.
  /// - Returns: whether nothing is left to record: the entry is in the vault, for the next commit, or there is no company.
  @discardableResult
  func record(_ event: DeviceEvent, isByCompany: Bool, time: Int64? = nil) -> Bool {
    switch state {
    case .enrolled(let enrolment), .outdated(let enrolment):
      decisions.record(
        event, isByCompany: isByCompany, revision: enrolment.policy.revision, time: time ?? now)
    case .policyMissing: false
    case .notEnrolled: true
    }
  }

  /// Joins a company. Throws where the vault belongs to one.
  func enrol(_ enrolment: Enrolment, deviceKey: SigningKey) throws {
    try changing.withLock { _ in
      guard case .notEnrolled = state else {
        throw ContainerError(.cannotCreate, "this vault belongs to a company already")
      }
      try vault.setSetting(Self.deviceKeySetting, to: deviceKey.seed.withUnsafeBytes { Array($0) })
      try store(enrolment)
    }
  }

  /// Takes a newer state of the enrolment: one that was confirmed earlier than the one held brings no time back, and what
  /// either has seen of the company's audit stays.
  func update(_ enrolment: Enrolment) throws {
    try changing.withLock { _ in
      var enrolment = enrolment
      let newest: Enrolment.Anchor? =
        switch state {
        case .enrolled(let held): held.anchor
        // The vault went back; the key store did not.
        case .outdated: try Self.storedAnchor(vault, keyStore)
        case .notEnrolled, .policyMissing: nil
        }
      guard let newest, enrolment.isNotOlder(than: newest) else { throw ContainerError(refusal: .withoutPolicy) }
      if case .enrolled(let held) = state {
        guard enrolment.anchor != held.anchor || enrolment.confirmedAt >= held.confirmedAt else {
          throw ContainerError(.refused, "the company has confirmed this policy later than this answer says")
        }
        enrolment.keepWitness(of: held)
      }
      do {
        try store(enrolment)
      } catch {
        // What was signed and cannot be stored holds in this process all the same: it may take something away.
        if case .enrolled = state {
          current.withLock { $0 = .enrolled(enrolment) }
          Self.apply(enrolment, vault)
        }
        throw error
      }
    }
  }

  func deviceKey() throws -> SigningKey {
    guard let seed = try vault.setting(Self.deviceKeySetting) else { throw ContainerError(refusal: .withoutPolicy) }
    return try SigningKey(seed: seed.withUnsafeBytes { SecretBytes(copying: $0) })
  }

  /// Vault first, then the key store: a crash between leaves a vault that is newer than its anchor, which is no harm.
  private func store(_ enrolment: Enrolment) throws {
    try vault.setSetting(Self.enrolmentSetting, to: Array(try JSONEncoder().encode(enrolment)))
    // Without what others wrote: a file that cannot be stored keeps no policy back.
    try vault.commitNames()
    // Stored is decided: whatever fails now, this process does not go on as if nothing had been.
    current.withLock { $0 = .enrolled(enrolment) }
    Self.apply(enrolment, vault)
    try Self.anchor(enrolment, vault, keyStore)
  }

  /// What the company set for the vault itself.
  private static func apply(_ enrolment: Enrolment, _ vault: Vault) {
    vault.requireOfNewFiles(
      enrolment.policy.settings.managedSettings.protectionAtLeast.map { ProtectionClass($0) } ?? .none)
  }

  private static func anchor(_ enrolment: Enrolment, _ vault: Vault, _ keyStore: any KeyStore) throws {
    if vault.isBound != true { try vault.bind() }
    let anchor = Array(try JSONEncoder().encode(enrolment.anchor))
    do {
      try keyStore.write(anchor.withUnsafeBytes { SecretBytes(copying: $0) }, as: .enrolment, of: vault.id)
    } catch {
      throw ContainerError(VaultError.keyStore(error))
    }
  }

  /// Keeps the highest time seen, so that a clock that is set back or held still does not make the policy younger. A disk
  /// that is full must not change a decision, so a failure here waits for the next time.
  private func observe(_ moment: Int64, _ uptime: Uptime) {
    guard !vault.isReadOnly else { return }
    changing.withLock { _ in
      guard case .enrolled(let held) = state else { return }
      // After each start of the system once, or what is counted since then would not count.
      let isDue =
        held.present(now: moment, uptime: uptime) - held.seenTime >= Self.observationStep
        || held.seenUptime?.boot != uptime.boot
      if isDue { try? store(held.observing(now: moment, uptime: uptime)) }
    }
  }

  private static func load(_ vault: Vault, _ keyStore: any KeyStore) throws -> EnrolmentState {
    let hasAnchor = try anchorBytes(vault, keyStore) != nil
    let stored: [UInt8]?
    do {
      stored = try vault.setting(enrolmentSetting)
    } catch {
      guard case .damaged = error else { throw error }
      // Whose the vault is cannot be known. It opens all the same, so that it can be verified and backed up.
      return .policyMissing
    }
    guard let stored else {
      // The vault's own anchor says whether there was a company: neither an older copy of the vault nor a key store
      // without the file un-enrols. Where that anchor is gone too, this is a vault from before any company, with what was
      // its owner's then, and nothing can be stored in it.
      return !hasAnchor && vault.isBound != true ? .notEnrolled : .policyMissing
    }
    guard let enrolment = try? JSONDecoder().decode(Enrolment.self, from: Data(stored)) else { return .policyMissing }
    guard hasAnchor else {
      // A present vault knows better than a key store that lost its word; an older copy does not.
      if vault.isReadOnly { return .policyMissing }
      try anchor(enrolment, vault, keyStore)
      return .enrolled(enrolment)
    }
    guard let newest = try storedAnchor(vault, keyStore) else { return .policyMissing }
    if enrolment.isNotOlder(than: newest) { return .enrolled(enrolment) }
    return enrolment.isOfSameDevice(as: newest) ? .outdated(enrolment) : .policyMissing
  }

  private static func anchorBytes(_ vault: Vault, _ keyStore: any KeyStore) throws -> SecretBytes? {
    do {
      return try keyStore.read(.enrolment, of: vault.id)
    } catch {
      throw ContainerError(VaultError.keyStore(error))
    }
  }

  /// The newest state of the enrolment that this device has applied; nil where that cannot be read.
  private static func storedAnchor(_ vault: Vault, _ keyStore: any KeyStore) throws -> Enrolment.Anchor? {
    try anchorBytes(vault, keyStore).flatMap { bytes in
      try? JSONDecoder().decode(Enrolment.Anchor.self, from: bytes.withUnsafeBytes { Data($0) })
    }
  }

  static let systemVersion: String = {
    let version = ProcessInfo.processInfo.operatingSystemVersion
    return "\(version.majorVersion).\(version.minorVersion).\(version.patchVersion)"
  }()
}
