internal import CofferSystem

/// A file's object, held open.
final class ContentObject: Sendable {
  let reference: ObjectReference
  let file: OwnedDescriptor

  var exponent: UInt8 { reference.blockSizeExponent }
  var blockSize: Int { reference.blockSize }

  init(reference: ObjectReference, file: OwnedDescriptor) {
    self.reference = reference
    self.file = file
  }
}
