#if canImport(CofferMount)
  internal import CofferMount

  /// Mounts that programs use while somebody ends them all: what those programs do next is not what they think.
  struct UsedMounts {
    private let mounts: [(place: String, programs: [String])]

    /// - Parameter places: canonical paths of mount points.
    init(at places: [String]) {
      mounts = places.map { ($0, Mounts.users(at: $0)) }.filter { !$0.programs.isEmpty }
    }

    /// Tells a person, once the mounts have ended.
    func tell() {
      for (place, programs) in mounts {
        Output.note(
          "programs used files in the mount at \(PathText.shown(Array(place.utf8))), which has ended "
            + "(\(programs.joined(separator: ", "))): what is written to that folder now is not in the vault")
      }
    }
  }
#else
  /// There are no mounts on this system.
  struct UsedMounts {
    init(at places: [String]) {}
    func tell() {}
  }
#endif
