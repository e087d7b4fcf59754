internal import CofferSystem
internal import Synchronization

/// A file's object, which is opened when it is first needed and then held open.
final class ContentObject: Sendable {
  let reference: ObjectReference
  private let opened = AtomicLazyReference<OwnedDescriptor>()
  let syncsAhead = SyncsAhead()

  var exponent: UInt8 { reference.blockSizeExponent }
  var blockSize: Int { reference.blockSize }

  /// Not open yet.
  init(_ reference: ObjectReference) { self.reference = reference }

  init(_ reference: ObjectReference, file: OwnedDescriptor) {
    self.reference = reference
    _ = opened.storeIfNil(file)
  }

  /// Opens the object, unless it is open. Comes before `file`, while the file's rows name the object.
  func open(in objects: ObjectStore, writing: Bool) throws {
    if opened.load() == nil { _ = opened.storeIfNil(try objects.open(reference.number, writing: writing)) }
  }

  /// Somebody has removed the open object, and with it what is written there: nothing may be stored that refers to it.
  var isNameless: Bool {
    get throws {
      guard let file = opened.load() else { return false }
      return try file.status().linkCount == 0
    }
  }

  /// Throws `badHandle` where it was not opened.
  var file: OwnedDescriptor {
    get throws {
      guard let file = opened.load() else { throw VaultError.badHandle }
      return file
    }
  }
}
