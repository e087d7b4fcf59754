public import CofferFiles
public import CofferSystem
internal import Synchronization

extension FileSnapshot {
  /// Writes the whole content to `output`: at offsets and on all cores where `isSeekable`, else in order.
  ///
  /// Each block is verified before it is written. A failure leaves a part: write to a temporary name.
  public func export(
    to output: OwnedDescriptor, isSeekable: Bool, control: TransferControl = TransferControl()
  ) throws(VaultError) {
    try VaultError.catching {
      switch inode.content {
      case .directory, .symbolicLink, .special: throw VaultError.isADirectory
      case .inline:
        let buffer = TransferBuffer(count: max(1, Int(byteCount)))
        let count = try read(at: 0, into: buffer.bytes)
        if control.isCancelled() { throw VaultError.cancelled }
        try output.writeAll(UnsafeRawBufferPointer(rebasing: buffer.bytes[..<count]))
        control.progress(count)
      case .object(let object, _):
        let exporter = Exporter(
          snapshot: self, object: object, output: output, isSeekable: isSeekable, control: control)
        try exporter.run()
      }
    }
  }
}

/// Hands runs of blocks to workers.
private final class Exporter: Sendable {
  private let snapshot: FileSnapshot
  private let object: ObjectReference
  private let output: OwnedDescriptor
  private let isSeekable: Bool
  private let control: TransferControl
  private let nextRun = Atomic<UInt64>(0)

  init(
    snapshot: FileSnapshot, object: ObjectReference, output: OwnedDescriptor, isSeekable: Bool,
    control: TransferControl
  ) {
    self.snapshot = snapshot
    self.object = object
    self.output = output
    self.isSeekable = isSeekable
    self.control = control
  }

  func run() throws {
    if isSeekable {
      let workers = Workers()
      try workers.run { try work { workers.isStopped } }
    } else {
      try work { false }
    }
  }

  private func work(isStopped: () -> Bool) throws {
    let runs = BlockRuns(blockSizeExponent: object.blockSizeExponent)
    let blockCount = object.blockCount(of: snapshot.byteCount)
    let ciphertext = TransferBuffer(count: runs.byteCount)
    let plaintext = TransferBuffer(count: runs.byteCount)
    while !isStopped() {
      if control.isCancelled() { throw VaultError.cancelled }
      let run = nextRun.wrappingAdd(1, ordering: .relaxed).oldValue
      let first = runs.firstBlock(of: run)
      guard first < blockCount else { return }
      let blocks = first..<min(first + UInt64(runs.blocksPerRun), blockCount)
      let page = try snapshot.page(runs.page(of: run), of: object)
      try snapshot.open(
        blocks, page, object, snapshot.cipher.sealer(page: page.index), ciphertext.bytes, into: plaintext.bytes)
      let offset = first << object.blockSizeExponent
      let count = Int(min(UInt64(blocks.count) << object.blockSizeExponent, snapshot.byteCount - offset))
      let bytes = UnsafeRawBufferPointer(rebasing: plaintext.bytes[..<count])
      if isSeekable { try output.writeAll(bytes, at: offset) } else { try output.writeAll(bytes) }
      control.progress(count)
    }
  }
}
