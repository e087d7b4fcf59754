internal import CofferFiles

/// Tells which folders are likely to be listed next by a program that walks a tree: those that were shown behind the one that it
/// lists now, and the first of those that are in it. Of several walks at once, too.
struct FolderWalk {
  /// A folder, and the one whose listing shows it.
  struct Coming: Equatable {
    let folder: InodeNumber
    let parent: InodeNumber
  }

  private struct Shown {
    let parent: InodeNumber
    /// The one behind it in the same listing.
    var next: InodeNumber?
    /// How many were listed in a row up to this one, each before the one behind it, or before what is in it.
    var runLength = 0
    /// It was told to be next, or is being listed.
    var isTold = false
  }

  /// Two generations, as what was shown long ago is no part of a walk any more.
  private var young: [InodeNumber: Shown] = [:]
  private var old: [InodeNumber: Shown] = [:]
  /// The last folder of a listing's earlier portion.
  private var last: Coming?

  /// Folders that a generation holds.
  static let limit = 2048
  /// Folders that are told to be next behind the one that is listed, at most: the more, the longer a walk has come true. While files are
  /// removed, several are gone through in the time that a commit takes.
  static let depth = 8

  /// A folder's listing begins. Returns what is likely to follow, the nearest first, and each once for each time that it was shown.
  mutating func willList(_ folder: InodeNumber) -> [Coming] {
    // What its earlier listing has shown is shown anew.
    if last?.parent == folder { last = nil }
    guard var shown = find(folder) else { return [] }
    shown.isTold = true
    shown.runLength = max(shown.runLength, 1)
    insert(shown, folder)
    var result: [Coming] = []
    var number = shown.next
    for distance in 0..<min(shown.runLength, Self.depth) {
      guard let next = number, var following = find(next) else { break }
      number = following.next
      // It will be the next one in the row.
      if distance == 0 { following.runLength = shown.runLength + 1 }
      if !following.isTold { result.append(Coming(folder: next, parent: following.parent)) }
      following.isTold = true
      insert(following, next)
    }
    return result
  }

  /// A listing shows folders, behind those of its earlier portions. Returns the one that is likely to be listed next.
  mutating func didShow(_ folders: some BidirectionalCollection<InodeNumber>, of parent: InodeNumber) -> Coming? {
    guard let first = folders.first, let end = folders.last else { return nil }
    let isStart = last?.parent != parent
    if let last, !isStart, var shown = find(last.folder) {
      shown.next = first
      insert(shown, last.folder)
    }
    for (number, next) in zip(folders, folders.dropFirst()) { insert(Shown(parent: parent, next: next), number) }
    insert(Shown(parent: parent), end)
    last = Coming(folder: end, parent: parent)
    // By the first look at a single folder nobody walks.
    guard isStart, let walked = find(parent), var shown = find(first) else { return nil }
    shown.runLength = walked.runLength + 1
    shown.isTold = true
    insert(shown, first)
    return Coming(folder: first, parent: parent)
  }

  /// For tests.
  var rememberedCount: Int { young.count + old.count }

  private func find(_ number: InodeNumber) -> Shown? { young[number] ?? old[number] }

  private mutating func insert(_ shown: Shown, _ number: InodeNumber) {
    if young.count >= Self.limit, young[number] == nil {
      old = young
      young = [:]
    }
    young[number] = shown
  }
}
