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
  /// The last folders of listings' earlier portions, of those that came last; the latest one is last.
  private var ends: [Coming] = []

  /// Folders that a generation holds.
  static let limit = 2048
  /// Listings that are told apart while they are under way.
  private static let endLimit = 4
  /// Folders that are told to be next behind the one that is listed, at most: the more, the longer a walk has come true. While files are
  /// removed, several are gone through in the time that a commit takes.
  static let depth = 8

  /// A folder's listing begins. Returns, where it is the second in a row or a later one, what is likely to follow,
  /// the nearest first, and each once for each time that it was shown.
  mutating func willList(_ folder: InodeNumber) -> [Coming] {
    // What its earlier listing has shown is shown anew.
    ends.removeAll { $0.parent == folder }
    guard var shown = find(folder) else { return [] }
    shown.isTold = true
    shown.runLength = max(shown.runLength, 1)
    insert(shown, folder)
    guard let next = shown.next, var following = find(next) else { return [] }
    // It will be the next one in the row.
    following.runLength = shown.runLength + 1
    insert(following, next)
    return tell(min(shown.runLength - 1, Self.depth), from: next)
  }

  /// So many in a listing from `first` on, less those that were told before.
  private mutating func tell(_ count: Int, from first: InodeNumber) -> [Coming] {
    var result: [Coming] = []
    var next: InodeNumber? = first
    for _ in 0..<count {
      guard let number = next, var shown = find(number) else { break }
      next = shown.next
      if !shown.isTold { result.append(Coming(folder: number, parent: shown.parent)) }
      shown.isTold = true
      insert(shown, number)
    }
    return result
  }

  /// A listing shows folders, behind those of its earlier portions. Returns the one that is likely to be listed next.
  mutating func didShow(_ folders: some BidirectionalCollection<InodeNumber>, of parent: InodeNumber) -> Coming? {
    guard let first = folders.first, let end = folders.last else { return nil }
    let earlier = ends.first { $0.parent == parent }
    if let earlier, var shown = find(earlier.folder) {
      shown.next = first
      insert(shown, earlier.folder)
    }
    for (number, next) in zip(folders, folders.dropFirst()) { insert(Shown(parent: parent, next: next), number) }
    insert(Shown(parent: parent), end)
    ends = ends.filter { $0.parent != parent }.suffix(Self.endLimit - 1) + [Coming(folder: end, parent: parent)]
    guard earlier == nil, let walked = find(parent), var shown = find(first) else { return nil }
    shown.runLength = walked.runLength + 1
    insert(shown, first)
    // Who looks into a single folder does not walk yet.
    return walked.runLength > 1 ? tell(1, from: first).first : nil
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
