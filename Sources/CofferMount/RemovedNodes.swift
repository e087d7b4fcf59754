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
  }

  private let known = Mutex<[InodeNumber: Node]>([:])

  /// As `keep`, for what nobody is about to open. Uses nothing but memory.
  func note(_ attributes: FileAttributes) {
    known.withLock { $0[attributes.number] = Node(attributes: attributes, file: $0[attributes.number]?.file) }
  }

  /// Called before the name goes, so that nobody asks between; it means nothing where it stays.
  func keep(_ attributes: FileAttributes, _ file: ViewFile?) {
    let former = known.withLock { $0.updateValue(Node(attributes: attributes, file: file), forKey: attributes.number) }
    try? former?.file?.close()
  }

  /// Changes what is known of a file, and gives what that is then; nil where nothing is.
  func change(_ number: InodeNumber, _ changes: AttributeChanges) -> FileAttributes? {
    known.withLock { known in
      guard let node = known[number] else { return nil }
      let attributes = changes.isEmpty ? node.attributes : node.attributes.applying(changes, at: SystemTime().now())
      known[number] = Node(attributes: attributes, file: node.file)
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
