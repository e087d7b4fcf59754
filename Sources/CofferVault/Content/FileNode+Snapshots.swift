internal import CofferSystem
internal import Synchronization

/// Pins on a version of the content: see ``ContentPin``.
extension FileNode {
  /// The content as it is now: pinned in its object, or, without one, copied.
  struct Version {
    let byteCount: UInt64
    let revision: UInt64
    let pin: ContentPin?
    let object: ContentObject?
    /// Sealed, so that a lock need not look for it.
    let sealedPlain: [UInt8]?
  }

  /// Everything written so far gets its slot first, so that memory does not hold versions.
  func pinVersion() throws -> Version {
    try writing.withLock { _ in
      let cipher = try presentCipher()
      if object == nil, plain.count > VaultFormat.inlineLimit { try moveToObject(sized: UInt64(plain.count)) }
      try flush()
      return try state.withLock { _ in
        guard let object else {
          let sealed = try cipher.sealInline(plain.bytes)
          smallVersions += 1
          return Version(byteCount: byteCount, revision: revision, pin: nil, object: nil, sealedPlain: sealed)
        }
        let pin: ContentPin
        if let newest = pins.last, newest.earlier.isEmpty, newest.byteCount == byteCount, newest.revision == revision {
          newest.users += 1
          pin = newest
        } else {
          pin = ContentPin(
            byteCount: byteCount, revision: revision, blockCount: object.reference.blockCount(of: byteCount))
          pins.append(pin)
        }
        return Version(byteCount: byteCount, revision: revision, pin: pin, object: object, sealedPlain: nil)
      }
    }
  }

  /// Ends a version's use.
  func release(_ version: Version) {
    if let pin = version.pin { unpin(pin) } else { state.withLock { _ in smallVersions -= 1 } }
  }

  /// Somebody reads the content as it was: the key that opens it has to stay. Under `state`.
  var hasVersions: Bool { !pins.isEmpty || smallVersions > 0 }

  /// Ends a pin's use. What it alone kept is handed to the next older pin that needs it, or is free.
  private func unpin(_ pin: ContentPin) {
    state.withLock { _ in
      pin.users -= 1
      guard pin.users == 0, let position = pins.firstIndex(where: { $0 === pin }) else { return }
      pins.remove(at: position)
      let older = position > 0 ? pins[position - 1] : nil
      for (block, earlier) in pin.earlier {
        if let older, older.earlier[block] == nil, pins[..<position].contains(where: { block < $0.blockCount }) {
          older.earlier[block] = earlier
        } else if let kept = earlier.block {
          release(kept.slot, earlier)
        }
      }
      pin.earlier = [:]
    }
  }

  private func release(_ slot: UInt64, _ earlier: ContentPin.Earlier) {
    if earlier.isFresh || (earlier.joinCount < joinCount && lastJoinGeneration <= vault.files.committedGeneration) {
      slots.giveBack(slot..<(slot + 1))
    } else if earlier.joinCount == joinCount {
      slots.releaseAfterJoin(slot)
    } else {
      slots.release(slot, after: lastJoinGeneration)
    }
  }
}
