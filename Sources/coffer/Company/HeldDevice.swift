internal import ArgumentParser
internal import CofferAPI
internal import CofferClient
internal import CofferContainer
internal import CofferCrypto
internal import CofferKeys
internal import CofferPolicy
internal import CofferSystem
internal import Foundation
internal import Logging

/// The device with its open vault, as its company's link sees it. The agent's, or that of a command which stays.
final class HeldDevice: LinkedDevice {
  private let container: Container
  private let mounts: HeldMounts?
  private let path: String
  private let keyStorePath: String
  private let ring: LogRing
  private let log = HeldLink.ring.log(label: "coffer.device")

  /// - Parameters:
  ///   - path: the vault's folder, absolute, as that of its key store.
  ///   - ring: what is uploaded as the device's log.
  init(_ container: Container, mounts: HeldMounts?, path: String, keyStorePath: String, ring: LogRing) {
    self.container = container
    self.mounts = mounts
    self.path = path
    self.keyStorePath = keyStorePath
    self.ring = ring
  }

  func enrolment() throws -> Enrolment {
    if case .outdated(let older) = container.enrolment { return older }
    return try container.presentEnrolment()
  }

  var isReadOnly: Bool { container.isReadOnly }

  func deviceKey() throws -> SigningKey { try container.deviceKey() }

  func take(_ enrolment: Enrolment) throws {
    // A policy that cannot be stored holds all the same.
    defer {
      applyLogLevel(enrolment)
      mounts?.recheck()
    }
    try container.update(enrolment)
  }

  func report(_ enrolment: Enrolment) -> DeviceReport {
    DeviceReport(
      osVersion: Container.systemVersion, version: CofferCommand.configuration.version,
      // A vault has one, always; and its key store is a folder.
      isPasscodeSet: true, isProtectionAvailable: false,
      appliedRevision: enrolment.policy.revision, appliedDigest: enrolment.bundle.digest,
      settings: treatments(enrolment), escrow: escrow(enrolment),
      // Where it is as it was seen, the company knows: a report with each entry would be one for each change.
      audit: enrolment.auditFault.map {
        AuditReport(number: $0.seen.number, hash: $0.seen.hash, fault: $0.sentence)
      })
  }

  /// For the holder of the company's key, where the vault is sealed to it.
  private func escrow(_ enrolment: Enrolment) -> EscrowReport? {
    guard let asked = try? enrolment.escrowKey(), let offer = try? container.escrowOffer(), offer.escrowKey == asked.key
    else { return nil }
    return EscrowReport(
      tenant: enrolment.tenant, vault: offer.vault.bytes, escrowKey: offer.escrowKey.bytes,
      encapsulatedKey: offer.slot.encapsulatedKey, sealedKey: offer.slot.ciphertext,
      clearingKey: offer.clearingKey.bytes, signature: offer.signature)
  }

  /// What became of each setting here.
  private func treatments(_ enrolment: Enrolment) -> [String: DeviceReport.Treatment] {
    let settings = enrolment.policy.settings
    var treatments: [String: DeviceReport.Treatment] = ["ownerActions": .honoured, "grace": .honoured]
    let managed = settings.managedSettings
    for name in managed.unknown { treatments[name] = .ignored }
    for name in managed.malformed { treatments[name] = .refused }
    for key in ManagedSettings.Key.allCases where settings.managed?[key.rawValue] != nil {
      guard treatments[key.rawValue] == nil else { continue }
      treatments[key.rawValue] =
        switch key {
        case .passcodeRequired, .passcodeMinimumLength, .protectionAtLeast, .logLevel: .honoured
        // The agent locks; a command that holds the vault itself does not.
        case .lockAfterMinutes: mounts == nil ? .refused : .honoured
        // There are no connections to file servers yet.
        case .allowedServers: .ignored
        // Done with the next passcode, where the root key vouches for the company's.
        case .escrow: !managed.isEscrowAsked || container.sealedCompanyEscrowKey != nil ? .honoured : .refused
        }
    }
    return treatments
  }

  private func applyLogLevel(_ enrolment: Enrolment) {
    let level = enrolment.policy.settings.managedSettings.logLevel
    ring.level = level.flatMap { Logger.Level(rawValue: $0.rawValue) } ?? .info
  }

  func orders() throws -> OrderBook { try container.orders() }
  func keep(_ orders: OrderBook) throws { try container.keep(orders) }

  func carryOut(_ order: DeviceCommand) -> OrderOutcome {
    switch order.kind {
    case .lock:
      container.lock(graceSeconds: 0)
      return container.lockState == .locked ? .done : .failed("Somebody unlocked the vault at the same moment.")
    case .uploadLog: return .upload(ring.lines)
    case .clearPasscode: return clearPasscode(order)
    case .refresh, .wipe: return .done
    }
  }

  private func clearPasscode(_ order: DeviceCommand) -> OrderOutcome {
    guard let clearing = order.clearing else {
      return .refused("The order has no clearing: coffer escrow clear makes one with the company's escrow key.")
    }
    do {
      try container.takeClearing(clearing)
      return .done
    } catch let error as ContainerError where error.category == .refused {
      return .refused("\(error.description.prefix(1).uppercased())\(error.description.dropFirst()).")
    } catch {
      log.warning("a clearing could not be taken: \(error: error)")
      return .failed("The device could not store the clearing.")
    }
  }

  func hasTaken(clearing digest: String) -> Bool {
    [UInt8](hexadecimal: digest).map { container.hasTaken(clearing: $0) } ?? false
  }

  func wipe(receipt: String) throws {
    // Whatever fails, or has to wait: from now on nothing can be read here.
    @Sendable func lock() {
      mounts?.endAll(forGood: true)
      container.lock(graceSeconds: 0)
    }
    let isLocked = DispatchSemaphore(value: 0)
    let isBeside =
      (try? NewThread.start { [self] in
        withExtendedLifetime(self, lock)
        isLocked.signal()
      }) != nil
    defer {
      if isBeside { isLocked.wait() }
      // Once more: somebody may have unlocked it before the keys went.
      lock()
    }
    let enrolment = try enrolment()
    var kept = KeptReceipt(
      vault: container.id.description, path: path, keyStore: keyStorePath, server: enrolment.server,
      pinnedCertificate: enrolment.pinnedCertificate, receipt: receipt)
    // Where it cannot be kept the company gets no answer. That is no reason to keep the keys.
    do { try kept.keep() } catch { log.warning("the receipt of a wipe could not be kept: \(error: error)") }
    // The company's order is for the device, so that no copy of the vault is spared; and it is for this vault, whatever lies at its
    // place by now.
    try container.destroyKeys()
    kept.isWiped = true
    try? kept.keep()
  }

  func undeliveredDecisions() throws -> [DecisionsRequest.Entry] {
    try container.undeliveredDecisions(limit: 500).map { DecisionsRequest.Entry(number: $0.number, entry: $0.text) }
  }

  func noteDecisions(deliveredThrough number: Int64, companyHas complete: Int64) throws {
    try container.noteDecisions(deliveredThrough: number, companyHas: complete)
  }
}
