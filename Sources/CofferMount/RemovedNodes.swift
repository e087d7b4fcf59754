internal import CofferContainer
internal import CofferFiles
internal import CofferSystem
internal import Synchronization

/// What files and folders were when their last name went, as long as the kernel knows them: a program that stands in a
/// removed folder, or holds a file by no more than a path's descriptor, may still ask.
final class RemovedNodes: Sendable {
  private struct Node {
    let attributes: FileAttributes
    /// Held open, so that whoever is about to open it by the name that it had finds it.
    let file: ViewFile?
    /// A symbolic link's, for whoever is about to follow it.
    let target: [UInt8]?

    func with(_ attributes: FileAttributes) -> Node { Node(attributes: attributes, file: file, target: target) }
  }

  private let known = Mutex<[InodeNumber: Node]>([:])

  /// As `keep`, for what nobody is about to open. Uses nothing but memory.
  func note(_ attributes: FileAttributes) {
    let attributes = Self.withoutName(attributes)
    known.withLock { known in
      known[attributes.number] =
        known[attributes.number]?.with(attributes) ?? Node(attributes: attributes, file: nil, target: nil)
    }
  }

  /// Called before the name goes, so that nobody asks between; it means nothing where it stays.
  func keep(_ attributes: FileAttributes, _ file: ViewFile? = nil, target: [UInt8]? = nil) {
    let node = Node(attributes: Self.withoutName(attributes), file: file, target: target)
    let former = known.withLock { $0.updateValue(node, forKey: attributes.number) }
    try? former?.file?.close()
  }

  /// Its last name goes now, which changes it.
  private static func withoutName(_ attributes: FileAttributes) -> FileAttributes {
    var attributes = attributes
    attributes.changed = max(attributes.changed, SystemTime().now())
    return attributes
  }

  /// Where a symbolic link led; nil where that is not known.
  func target(of number: InodeNumber) -> [UInt8]? { known.withLock { $0[number]?.target } }

  /// Changes what is known of a file, and gives what that is then; nil where nothing is.
  func change(_ number: InodeNumber, _ changes: AttributeChanges) -> FileAttributes? {
    known.withLock { known in
      guard let node = known[number] else { return nil }
      let attributes = changes.isEmpty ? node.attributes : node.attributes.applying(changes, at: SystemTime().now())
      known[number] = node.with(attributes)
      return attributes
    }
  }

  /// Forgets a file; gives what the caller is to close.
  func takeOut(_ number: InodeNumber) -> ViewFile? { known.withLock { $0.removeValue(forKey: number) }?.file }

  func forgetAll() {
    let nodes = known.withLock { known in
      defer { known = [:] }
      return known.values.map(\.file)
    }
    for file in nodes { try? file?.close() }
  }
}
