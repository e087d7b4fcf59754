internal import CofferSystem

/// One version of a file's content that somebody reads. Guarded by its node's `state`.
///
/// What a change replaces while the pin is the newest stays here: about 80 bytes for each block that is overwritten, in
/// memory, and its slot in the object. An older pin looks through the newer ones, so each block is kept once.
final class ContentPin {
  struct Earlier {
    /// Nil: it was a hole.
    let block: MapPage.Block?
    /// The index never named the slot.
    let isFresh: Bool
    /// Joins of the file before the block was replaced.
    let joinCount: UInt64
  }

  let byteCount: UInt64
  let revision: UInt64
  let blockCount: UInt64
  var users = 1
  var earlier: [UInt64: Earlier] = [:]

  init(byteCount: UInt64, revision: UInt64, blockCount: UInt64) {
    self.byteCount = byteCount
    self.revision = revision
    self.blockCount = blockCount
  }
}
