#if canImport(CofferMount)
  internal import CofferMount
  internal import CofferSystem

  /// An agent that was killed and cannot end, because it used one of its own mounts.
  struct KilledAgent {
    let process: Int32

    /// Nil where the process is none.
    init?(_ process: Int32) {
      guard process > 0, KilledServer.stays(process) else { return nil }
      self.process = process
    }

    /// The one that serves a mount; nil where that is served by another, or by none that says so.
    init?(serving device: String) {
      guard let process = MountClaims.claimant(of: device) else { return nil }
      self.init(process)
    }

    /// Its mounts that answer nobody. One that answers has the number of one of its own that was taken out of the tree.
    private var mounts: some Sequence<(device: String, place: String)> {
      Mounts.ofVaults.lazy.filter { [process] in
        MountClaims.claimant(of: $0.device) == process && Mounts.server(at: $0.place) == .silent
      }
    }

    /// Ends the connections of all that it serves: nobody is answered there any more. Where another agent does not answer, none, for it may
    /// have one by the number of one that was taken out of the tree. `false` where this user may not, or where it stays all the same.
    func end() -> Bool {
      let mounts = mounts.filter { [process] mount in
        if case .nobody = AgentClient.serving(mount.device, besides: process) { true } else { false }
      }
      return KilledServer.end(process, with: mounts)
    }

    /// Nil where nothing is mounted any more that could hold it up.
    var failure: Failure? {
      guard let place = mounts.first(where: { _ in true })?.place else { return nil }
      return Failure(
        code: 75,
        text:
          "the agent (process \(process)) was killed and does not end: it waits for a mount of its own, it seems. End that with "
          + "coffer unmount \(place.quotedForShell), and try again")
    }
  }
#else
  /// There are no mounts on this system.
  struct KilledAgent {
    init?(_ process: Int32) { return nil }
    var failure: Failure? { nil }
  }
#endif
