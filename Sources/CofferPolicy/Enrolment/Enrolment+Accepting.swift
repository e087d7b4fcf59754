/// What the device takes from its company, and what it refuses. On refusal nothing changes: each function returns a new
/// value or throws.
extension Enrolment {
  /// Takes the company's present keyset and policy. The policy that is held already is taken again without change, so
  /// that a renewed keyset can come with it.
  ///
  /// A revision that follows directly on the one held must name its digest. A device that was away for several
  /// revisions has nothing to compare, and across epochs it does not compare either: there, the last policy held may
  /// be the work of the key that was withdrawn. Signature and higher revision, or higher epoch, decide then.
  ///
  /// - Parameter now: seconds since 1970 by the device's clock.
  public func accepting(
    bundle bundleText: String, keyset keysetText: String, now: Int64
  ) throws(PolicyRefusal) -> Enrolment {
    var next = try accepting(keyset: keysetText, now: now)
    let isNewEpoch = next.keyset.keyset.epoch > keyset.keyset.epoch
    let offered = try PolicyBundle(verifying: bundleText, keyset: next.keyset.keyset)
    guard offered.policy.isAddressed(to: device) else { throw .otherAudience }
    // Its keys sign for no time behind their end: one that is stolen stops no grace period for ever.
    guard offered.policy.issuedAt <= next.keyset.keyset.notAfter else { throw .expired(.keyset) }
    // Times that a withdrawn key signed do not count.
    guard offered.policy.notAfter >= (isNewEpoch ? now : max(now, next.trustedTime)) else { throw .expired(.policy) }
    if offered.document.text == bundle.document.text { return next }

    let held = policy.revision
    if !isNewEpoch {
      let revision = offered.policy.revision
      guard revision != held else { throw .conflictingRevision(held) }
      guard revision > held else { throw .olderRevision(held: held, offered: revision) }
      guard revision != held + 1 || offered.policy.prevHash == bundle.digest else {
        throw .conflictingRevision(revision)
      }
    }
    next.bundle = offered
    next.lastStatus = nil
    // Nor does a key that was withdrawn keep the company's time ahead.
    next.trustedTime = isNewEpoch ? offered.policy.issuedAt : max(next.trustedTime, offered.policy.issuedAt)
    // When it was issued, this was the policy; whether it still is, only a status says.
    next.confirmedAt = isNewEpoch ? offered.policy.issuedAt : max(confirmedAt, offered.policy.issuedAt)
    next.seenTime = max(isNewEpoch ? now : seenTime, next.confirmedAt)
    // The clock that nobody sets counts on from the time that stays; from another it has nothing to count.
    if next.seenTime != seenTime { next.seenUptime = nil }
    return next
  }

  /// Takes the answer to `nonce`, which renews the grace period and says which groups the device is in.
  ///
  /// - Parameter uptime: the clock that nobody sets, read before the question was sent: what passed since then counts.
  /// - Throws: ``PolicyRefusal/outdated(held:current:)`` when the company has a newer policy.
  public func accepting(status statusText: String, nonce: String, now: Int64, uptime: Uptime? = nil)
    throws(PolicyRefusal) -> Enrolment
  {
    guard keyset.keyset.notAfter >= max(now, trustedTime, keyset.keyset.issuedAt) else { throw .expired(.keyset) }
    let status = try SignedStatus(verifying: statusText, keyset: keyset.keyset).status
    // As for a policy.
    guard status.time <= keyset.keyset.notAfter else { throw .expired(.keyset) }
    guard status.audience == device else { throw .otherAudience }
    guard status.nonce == nonce else { throw .otherNonce }
    let held = policy.revision
    guard status.revision <= held else { throw .outdated(held: held, current: status.revision) }
    guard status.revision == held else { throw .olderRevision(held: held, offered: status.revision) }
    guard status.digest == bundle.digest else { throw .conflictingRevision(held) }
    var next = self
    next.lastStatus = status
    next.trustedTime = max(trustedTime, status.time)
    next.confirmedAt = max(confirmedAt, status.time)
    // The company's clock, fresh by the nonce, corrects a device whose own once ran ahead.
    next.seenTime = next.confirmedAt
    next.seenUptime = uptime
    next.groups = status.groups ?? []
    next.witness(status)
    return next
  }

  private func accepting(keyset text: String, now: Int64) throws(PolicyRefusal) -> Enrolment {
    let offered = try SignedKeyset(verifying: text, root: root)
    let (old, new) = (keyset.keyset, offered.keyset)
    guard new.tenant == tenant else { throw .otherTenant }
    guard new.notAfter >= max(now, old.issuedAt) else { throw .expired(.keyset) }
    guard new.epoch > old.epoch || (new.epoch == old.epoch && new.issuedAt >= old.issuedAt) else {
      throw .olderKeyset(held: old.epoch, offered: new.epoch)
    }
    guard new.epoch > old.epoch || Set(new.keys) == Set(old.keys) else { throw .changedKeyset(epoch: new.epoch) }
    var next = self
    next.keyset = offered
    next.trustedTime = new.epoch > old.epoch ? new.issuedAt : max(trustedTime, new.issuedAt)
    return next
  }
}
