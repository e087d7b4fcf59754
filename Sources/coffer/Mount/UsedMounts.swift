#if canImport(CofferMount)
  internal import CofferMount
  internal import CofferSystem

  /// Mounts that programs use while somebody ends them all: what those programs do next is not what they think.
  struct UsedMounts {
    private let mounts: [(place: String, users: MountUsers)]

    /// - Parameters:
    ///   - places: canonical paths of mount points. One that was taken out of the tree has no users that could be told from those
    ///     of the folder that is seen there.
    ///   - server: the process that serves the mounts.
    init(at places: [String], servedBy server: Int32) {
      var seen: Set<[UInt8]> = []
      let places = places.filter { seen.insert(Array($0.utf8)).inserted }
      mounts = MountUsers.$asker.withValue(Session.present.process) {
        places.filter(Mounts.isVault).map { ($0, Mounts.users(at: $0, servedBy: server)) }
      }.filter { !$0.users.isEmpty }
    }

    /// - Parameters:
    ///   - place: of one mount, a canonical path.
    ///   - users: those that it was taken from.
    init(at place: String, _ users: MountUsers) { mounts = users.isEmpty ? [] : [(place, users)] }

    /// Tells a person of the mounts that have ended since.
    func tell() {
      let isTerminal = Session.present.errors.isTerminal
      for (place, users) in mounts where !Mounts.isVault(at: place) {
        Output.note(
          "programs used files in the mount at \(PathText.shown(Array(place.utf8))), which has ended "
            + "(\(users.text(naming: isTerminal))): what is written to that folder now is not in the vault")
      }
    }
  }
#else
  /// There are no mounts on this system.
  struct UsedMounts {
    init(at places: [String], servedBy server: Int32) {}
    func tell() {}
  }
#endif
