internal import CFuse3
internal import Synchronization

/// What the kernel of one mount is being told by threads that answer another mount's requests.
///
/// Such a thread tells before it answers, so that a program which knows of a change finds it in every mount. But the kernel may
/// first wait for the lock of a folder or of a page, and who holds that may be a program whose request waits for an answer
/// here, from a thread that tells the other kernel about the same node. So whoever is about to tell announces it, and then
/// does not wait where its own mount's kernel is being told of one of its nodes: of a ring of threads that would wait for each
/// other, the last one sees the one that waits for it. A program's request locks no node but those that it changes.
///
/// A mount has only so many threads: some are always left to answer those for whom another kernel waits.
final class KernelTellings: Sendable {
  private struct State {
    /// How many threads tell of each node.
    var nodes: [fuse_ino_t: Int] = [:]
    /// How many of this mount's own threads tell another kernel.
    var tellingCount = 0
  }

  private let state = Mutex(State())

  /// Threads of one mount that may wait for another kernel at the same time: at most half of them.
  static let tellingLimit = FuseSession.threadCount / 2

  /// Announces that this mount's kernel is about to be told of nodes.
  func announce(_ nodes: Set<fuse_ino_t>) {
    state.withLock { state in for node in nodes { state.nodes[node, default: 0] += 1 } }
  }

  func withdraw(_ nodes: Set<fuse_ino_t>) {
    state.withLock { state in
      for node in nodes {
        guard let count = state.nodes[node] else { continue }
        state.nodes[node] = count > 1 ? count - 1 : nil
      }
    }
  }

  /// Runs `tell`, which may wait for another mount's kernel, where a thread of this mount may: one that answers a request
  /// about `nodes`, behind its announcement. Whether it ran.
  func mayWait(for nodes: Set<fuse_ino_t>, _ tell: () -> Void) -> Bool {
    let mayWait = state.withLock { state in
      guard state.tellingCount < Self.tellingLimit, nodes.allSatisfy({ state.nodes[$0] == nil }) else { return false }
      state.tellingCount += 1
      return true
    }
    guard mayWait else { return false }
    tell()
    state.withLock { $0.tellingCount -= 1 }
    return true
  }
}

extension KernelChange {
  /// The node whose lock the kernel may take for it.
  var node: fuse_ino_t {
    switch self {
    case .name(_, let folder): folder
    case .attributes(let node), .content(let node): node
    }
  }
}
