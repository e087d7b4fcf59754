import CofferTestSupport
import Foundation

/// A rule of the order in which a vault makes things durable; and a log as it were if the code did not keep it.
enum CommitRule: String, CaseIterable {
  case objectsBytesAreSynced
  case objectsNamesAreSynced
  case objectsFoldersAreSynced
  case removedObjectsNamesAreSynced
  case objectsGoAfterTheCommit
  case indexLogIsSynced
  case journalIsSynced
  case indexIsSyncedBeforeItsLogGoes
  case anchorFollowsTheCommit
  case keyStoreItemsAreSynced
  case keyStoreNamesAreSynced
  case headersAreSynced
  case headersNamesAreSynced

  /// The log of a vault that breaks the rule.
  func broken(_ log: StorageLog) -> StorageLog {
    switch self {
    case .objectsBytesAreSynced: log.withoutSyncs { $0.starts(with: ["vault", "objects"]) && $0.count == 4 }
    case .objectsNamesAreSynced: log.withoutSyncs { $0.starts(with: ["vault", "objects"]) && $0.count == 3 }
    case .objectsFoldersAreSynced: log.withoutSyncs { $0 == ["vault", "objects"] }
    case .removedObjectsNamesAreSynced: log.withoutSyncsOfRemovals
    case .objectsGoAfterTheCommit:
      log.movingForward { log, step in
        if case .unlink(let node, _, _) = step { log.parts(node).starts(with: ["vault", "objects"]) } else { false }
      }
    case .indexLogIsSynced: log.withoutSyncs { $0 == ["vault", "index.sqlite-wal"] }
    case .journalIsSynced: log.withoutSyncs { $0 == ["vault", "journal"] }
    case .indexIsSyncedBeforeItsLogGoes: log.withoutSyncs { $0 == ["vault", "index.sqlite"] }
    case .anchorFollowsTheCommit:
      log.movingForward { log, step in step.node.map { log.parts($0).first == "keys" } ?? false }
    case .keyStoreItemsAreSynced: log.withoutSyncs { $0.first == "keys" && $0.count == 3 }
    case .keyStoreNamesAreSynced: log.withoutSyncs { $0.first == "keys" && $0.count == 2 }
    case .headersAreSynced: log.withoutSyncs { $0.count == 2 && $0[0] == "vault" && $0[1].hasSuffix(".new") }
    case .headersNamesAreSynced: log.withoutSyncs { $0 == ["vault"] }
    }
  }
}

extension StorageStep {
  /// The file or folder that the step is about.
  var node: NodeID? {
    switch self {
    case .create(let node, _, _, _), .write(let node, _, _), .truncate(let node, _), .punch(let node, _),
      .sync(let node), .rename(let node, _, _, _, _), .unlink(let node, _, _):
      node
    case .commitBegan, .durable, .mayHold, .circumstances, .backupBegan, .backupFinished, .backupEnded: nil
    }
  }
}

extension StorageLog {
  func parts(_ node: NodeID) -> [String] { (paths[node] ?? "").split(separator: "/").map(String.init) }

  /// As if nothing had synced the files and folders that `isMeant` by their first path.
  func withoutSyncs(_ isMeant: ([String]) -> Bool) -> StorageLog {
    var log = self
    log.steps.removeAll { step in
      if case .sync(let node) = step { isMeant(parts(node)) } else { false }
    }
    return log
  }

  /// As if a folder of objects were synced for new names only.
  var withoutSyncsOfRemovals: StorageLog {
    var log = self
    log.steps = []
    var hasNewNames: Set<NodeID> = []
    for step in steps {
      switch step {
      case .create(_, _, _, let folder): hasNewNames.insert(folder)
      case .sync(let node) where parts(node).starts(with: ["vault", "objects"]) && parts(node).count == 3:
        if hasNewNames.remove(node) == nil { continue }
      default: break
      }
      log.steps.append(step)
    }
    return log
  }

  /// As if the steps that `isMeant` came first in each commit.
  func movingForward(_ isMeant: (StorageLog, StorageStep) -> Bool) -> StorageLog {
    var log = self
    log.steps = []
    var commit: [StorageStep]?
    for step in steps {
      commit?.append(step)
      if commit == nil { log.steps.append(step) }
      switch step {
      case .commitBegan: commit = []
      case .durable:
        let inside = commit ?? []
        log.steps += inside.filter { isMeant(self, $0) } + inside.filter { !isMeant(self, $0) }
        commit = nil
      default: break
      }
    }
    return log
  }
}
