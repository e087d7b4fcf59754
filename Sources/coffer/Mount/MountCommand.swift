#if canImport(CofferMount)
  internal import ArgumentParser
  internal import CofferContainer
  internal import CofferFiles
  internal import CofferMount
  internal import CofferSystem
  internal import Foundation

  struct MountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "mount", abstract: "Shows the vault as a folder in which every program works.",
      discussion: """
        Examples:
          coffer mount ~/Files
          coffer mount --folder /reports --read-only ~/Reports

        The agent serves the folder, and is started where there is none. When this returns, programs can use it. Other
        commands see what they write; it is durable once it is synced, or a few seconds later.
        While the vault is locked, content of class complete cannot be read there either. It ends with coffer unmount, with
        the agent, or when a company's policy takes the right away.
        """)

    @OptionGroup var options: GlobalOptions
    @OptionGroup var settings: AgentSettings

    @Argument(help: ArgumentHelp("An empty folder.", valueName: "dir"))
    var directory: String

    @Option(help: ArgumentHelp("The vault's folder to show.", valueName: "path"))
    var folder = "/"

    @Flag(help: "Nothing can be changed there.")
    var readOnly = false

    @Flag(help: "Let other users in, as far as the files' permissions do.")
    var allowOther = false

    @Flag(
      help: """
        Let idle processors sleep while programs wait for the mount. In some virtual machines waking them takes longer than \
        the answer, so that a mount keeps one or all of them busy while it is used.
        """)
    var savePower = false

    @Flag(help: "Stay until the mount has ended; an interrupt ends it.")
    var foreground = false

    var agentSettings: AgentSettings? { settings }

    var adviceWithoutAgent: String? {
      guard let path = try? MountPoint(directory).path, Mounts.isDead(at: path) else { return nil }
      return "clear its mount away with: coffer unmount \(path.quotedForShell)"
    }

    private struct Answer: Encodable { let mounted: String }

    func run() throws {
      guard let mounts = Session.present.mounts else { return try runWithNewAgent() }
      let point = try MountPoint(directory)
      try point.requireEmpty(options)
      let shown = try VaultPath(argument: folder)
      let server: MountServer
      do {
        server = try PathText.naming(shown) {
          try mounts.mount(
            shown, at: point.path, isReadOnly: readOnly,
            MountSettings(allowsOthers: allowOther, savesPower: savePower))
        }
      } catch let error as MountError {
        throw Failure(error)
      } catch let error as ContainerError where shown != .root {
        throw Failure(code: Failure.code(error.category), text: "--folder: \(error.description)")
      }
      if options.json {
        try Output.json(Answer(mounted: point.path))
      } else {
        Output.name(
          "mounted on ", Array(point.path.utf8), suffix: "; end it with: coffer unmount \(point.path.quotedForShell)")
      }
      if server.view.isReadOnly, !readOnly {
        Output.note("nothing can be changed there: this is a backup, or an older state of the vault")
      }
      if let other = mounts.place(sharing: server) {
        Output.note(
          "this vault is mounted on \(PathText.shown(Array(other.utf8))) too: programs take a file in both for two. Do not copy one "
            + "onto itself, which empties it, or move it there, which removes it")
      }
      if allowOther, !server.view.isReadOnly, let root = try? server.view.attributes(of: server.view.root),
        root.permissions & 0o011 == 0
      {
        Output.note(
          "other users can pass it once the permissions of its own folder let them: chmod 755 \(point.path.quotedForShell)"
        )
      }
      if server.view.isLocked {
        Output.note("the vault is locked: names are shown, and contents once it is opened with: coffer unlock")
      }
      do { try Output.finish() } catch {
        Output.note("it is mounted all the same; end it with: coffer unmount \(point.path.quotedForShell)")
        throw error
      }
      // An interrupt is answered when the mount has ended.
      if foreground { try Session.present.interrupts.catching { try stay(server) } }
    }

    /// Nobody holds the vault: starts the agent, which then does this command.
    private func runWithNewAgent() throws {
      // What cannot be mounted on is said before anyone is asked for a passcode.
      try MountPoint(directory).requireEmpty(options)
      var unlock = UnlockCommand()
      unlock.options = options
      unlock.settings = settings
      let isNew = try unlock.startAgent()
      if isNew, foreground { noteIdleLock() }
      guard let end = try AgentClient.run(self) else {
        throw Failure(code: 75, text: "the agent has ended again; try again")
      }
      if isNew, case .exit(let code) = end { if code == 0 { noteIdleLock() } else { endUnused() } }
      try end.endProcess()
    }

    private func noteIdleLock() {
      guard settings.idleLock > 0, !options.json else { return }
      Output.note(
        "unlocked; locks after \(settings.idleLock.counted("minute")) \(AgentSettings.idleness)")
    }

    /// Nobody asked for an agent without a mount: the vault would stay open.
    private func endUnused() {
      guard let status = try? AgentClient.connect(options)?.status(), status.mounts.isEmpty, status.commands == 0
      else { return }
      _ = try? AgentClient.stopAgent(of: options)
    }

    private func stay(_ server: MountServer) throws {
      let interrupts = Session.present.interrupts
      // Who only waits here does not use the vault.
      Session.present.noteIdleness()
      while !server.waitForEnd(orUntil: { interrupts.isRaised }) {
        defer { server.tellWhomItLeft() }
        do { try server.end(isForced: true) } catch {
          // Somebody has taken it out of the tree before, or hidden it: now it has ended as well.
          if error != .notMounted, error != .foreign { throw Failure(error) }
        }
        guard interrupts.signal != nil else {
          throw Failure(code: 130, text: "unmounted, because the agent ends or nobody waits for it any more")
        }
        throw Failure(
          code: 130, text: "interrupted; unmounted. The agent goes on with the vault; end it with: coffer agent stop")
      }
    }
  }

  struct UnmountCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "unmount", abstract: "Ends a mount: what programs wrote there is stored.",
      discussion: """
        Examples:
          coffer unmount ~/Files
          coffer unmount --force ~/Files

        Also clears away a mount whose agent was killed. The agent goes on: end it with coffer agent stop.
        """,
      aliases: ["umount"])

    @OptionGroup var options: GlobalOptions

    @Argument(help: ArgumentHelp("The folder that a vault is mounted on.", valueName: "dir"))
    var directory: String

    @Flag(help: "Also where programs use files in it; they can then use them no more.")
    var force = false

    /// For the agent that serves what this process sees at the folder, which may see something else there in its own name space of mounts:
    /// its id of that, and the folder's canonical path.
    @Option(help: .hidden)
    var mount: String?
    @Option(help: .hidden)
    var place: String?

    /// Whoever serves what is mounted there has to store what programs wrote. Where no vault's mount is seen, the vault's that is named:
    /// somebody may have taken its mount out of the tree, and programs use it still.
    func agent() throws -> AgentClient? {
      let path = try MountPoint(directory, isEnding: true).path
      guard let device = Mounts.device(at: path) else {
        return (try? AgentClient.isVaultSeen(options)) == true ? try AgentClient.connectBriefly(options) : nil
      }
      guard case .agent(let found, _, let mount) = AgentClient.serving(device),
        mount.ends(with: path, isForced: force)
      else { return nil }
      // The agent may not see that.
      if !force, !Mounts.places(below: path).isEmpty { throw Failure(MountError.busyBelow) }
      guard let id = mount.id else { return found }
      var agent = found
      agent.arguments = ["--mount", id, "--place", path]
      // What the agent does not see, it could not take away.
      agent.didEnd = {
        guard Mounts.device(at: path) == device, case .agent(_, _, let left) = AgentClient.serving(device),
          left.id == id, left.hasEnded ?? false
        else { return }
        do { try clear(path, device) } catch {
          Output.note("it is seen here still, but programs can use files in it no more: \(error)")
        }
      }
      return agent
    }

    private struct Answer: Encodable {
      let unmounted: String
      let stored: Bool
    }

    /// What becomes of what programs wrote last.
    private enum Storing {
      case isDone
      /// The mount goes on at another place.
      case goesOn
      /// By its agent, which was not asked, for it sees no mount that it could end.
      case isLeft
      /// By an agent that could not be asked.
      case isUnknown
      /// Nobody serves it any more. What was not synced when its agent was killed is lost; where the mount was torn from its agent, that
      /// stores it.
      case isOver
      /// The same, and an agent does not answer that may have been its own.
      case isInDoubt

      var text: String {
        switch self {
        case .isDone, .goesOn: "unmounted"
        case .isOver:
          "unmounted. Nobody served it any more: where its agent was killed, what programs wrote last and did not sync may be lost"
        case .isInDoubt:
          "unmounted. Nobody served it any more. An agent does not answer: where it was that one's, it still has to store what programs wrote last"
        case .isLeft:
          "unmounted. What programs wrote last is stored by its agent, soon or when the last of them has ended"
        case .isUnknown:
          "unmounted. The agent that served it is not found from here, or does not answer: it still has to store what programs wrote last"
        }
      }
    }

    func run() throws {
      let path = try place ?? MountPoint(directory, isEnding: true).path
      let ended: Storing?
      do {
        ended = try MountUsers.$asker.withValue(Session.present.process) { try end(path) }
      } catch let error as MountError {
        throw Failure(error, at: path)
      }
      guard let storing = ended else {
        // It did not answer when it was asked first, and does now.
        guard let end = try AgentClient.run(self) else { throw Failure(MountError.silent) }
        return try end.endProcess()
      }
      if options.json { return try Output.json(Answer(unmounted: path, stored: storing == .isDone)) }
      Output.note(storing.text)
    }

    /// Nil where an agent is to do it.
    private func end(_ path: String) throws(MountError) -> Storing? {
      guard let mounts = Session.present.mounts else { return try unmountHere(path) }
      guard let server = mount.map(mounts.server(identified:)) ?? mounts.server(at: path) else {
        throw mount == nil ? Mounts.absence(at: path) : .notMounted
      }
      // Also where something was lost.
      defer { server.tellWhomItLeft() }
      try server.end(isForced: force) {
        Output.note("waiting until what programs wrote is stored, and the system lets go of the mount")
      }
      return .isDone
    }

    /// For a place that a mount is only bound to, for one that the agent does not see, and for a mount of an agent that is gone, or that
    /// is not found. Nil where an agent is to end it.
    private func unmountHere(_ path: String) throws(MountError) -> Storing? {
      guard let device = Mounts.device(at: path) else { throw Mounts.absence(at: path) }
      switch AgentClient.serving(device) {
      case .agent(_, let status, let mount):
        if mount.ends(with: path, isForced: force) { return nil }
        if mount.hasEnded ?? false {
          try clear(path, device)
          // Whoever ended it was told, or nobody.
          let arePagesLost = mount.pagesLost ?? false
          guard mount.stored ?? false else {
            throw .notStored(isFull: status.waitsForRoom ?? false, arePagesLost: arePagesLost)
          }
          if arePagesLost { throw .pagesLost }
          return .isDone
        }
        try leave(path, device)
        // It may have been its only place, if the agent calls that otherwise.
        guard case .agent(_, _, let left) = AgentClient.serving(device), left.id == mount.id,
          !left.detached || left.hidden ?? false
        else { return .isLeft }
        Output.note("it was bound there: the vault stays mounted on \(PathText.shown(Array(mount.place.utf8)))")
        return .goesOn
      case .unanswered: return try unmountUnserved(path, device, isAgentSilent: true)
      case .nobody: return try unmountUnserved(path, device, isAgentSilent: false)
      }
    }

    /// The same where no agent is found that serves it.
    ///
    /// - Parameter isAgentSilent: one does not answer, and it may be the one that has to store what programs wrote.
    private func unmountUnserved(_ path: String, _ device: String, isAgentSilent: Bool) throws(MountError) -> Storing {
      let server = Mounts.server(at: path)
      if server == .silent, let killed = KilledAgent(serving: device) {
        Output.note(
          "its agent (process \(killed.process)) was killed and does not end: this ends it, which takes some seconds")
        // It may end later, or wait for another one.
        guard killed.end() || Mounts.server(at: path) != .silent else { throw .killed(process: killed.process) }
        if Mounts.device(at: path) == device { try clear(path, device) }
        return .isOver
      }
      if server == .silent, force, KilledServer.end(device, at: path) {
        if Mounts.device(at: path) == device { try clear(path, device) }
        return .isOver
      }
      switch server {
      case .gone:
        try clear(path, device)
        return isAgentSilent ? .isInDoubt : .isOver
      // It is used by who has asked it, which the system could not tell from others.
      case .silent where !force: throw .silent
      case .answers where isAgentSilent && !force: throw .maybeSilent
      case .silent, .answers, nil:
        try leave(path, device)
        return .isUnknown
      }
    }

    /// Takes out of the tree what nobody can use any more.
    private func clear(_ path: String, _ device: String) throws(MountError) {
      if !force, !Mounts.places(below: path).isEmpty { throw .busyBelow }
      try detach(path, device)
    }

    /// Takes it out of the tree, whoever uses it, with what is mounted below it.
    private func detach(_ path: String, _ device: String) throws(MountError) {
      let below = Mounts.places(below: path)
      try Mounts.unmountAll(of: device, from: path, isLazy: true)
      MountServer.tell(ofDetached: below)
    }

    /// Takes it out of the tree. Whoever uses files in it cannot be cut off here.
    private func leave(_ path: String, _ device: String) throws(MountError) {
      do {
        try Mounts.unmountAll(of: device, from: path, isLazy: false)
      } catch {
        guard force, error.isBusy else { throw error }
        let users = Mounts.users(at: path, servedBy: ProcessInfo.processInfo.processIdentifier)
        try detach(path, device)
        // It may be used by what cannot be looked at; or only in the way of another mount, which is not.
        if error == .busyBelow, users.isEmpty { return }
        let text = users.isEmpty ? "" : " (\(users.text(naming: Session.present.errors.isTerminal)))"
        Output.note(
          "programs that use files in it\(text) go on to do so, until they end or the agent of its vault does: coffer agent stop --vault "
            + "and the vault's folder")
      }
    }
  }

  extension AgentStatus.Mount {
    /// Whether an unmount of the place where a person sees it is to end it: not where that is one more of its places, nor where it has
    /// ended. One that the agent sees nowhere, while others do, is ended by force, and so is one that is hidden at its place; else only
    /// their place is taken away.
    fileprivate func ends(with path: String, isForced: Bool) -> Bool {
      if hasEnded ?? false { return false }
      if hidden ?? false { return isForced && place.isSamePath(as: path) }
      return detached ? isForced : place.isSamePath(as: path)
    }
  }

  extension MountServer {
    /// Tells a person of the programs that used it when it was ended, also where something was lost.
    fileprivate func tellWhomItLeft() {
      UsedMounts(at: placeCutOff, usersCutOff).tell()
      Self.tell(ofDetached: takeDetachedBelow())
      switch takeKeptElsewhere() {
      case .nowhere: break
      case .places([]):
        Output.note(
          "the system keeps it for programs that see it in another name space of mounts, or from where it was taken out of the tree: they "
            + "can use files in it no more")
      case .places(let places):
        Output.note(
          "it is bound to another place too, or something hides it: programs can use files in it no more\(Self.names(places)); where it is "
            + "seen still, umount(8) ends that"
        )
      }
    }

    /// What was mounted below one that was taken out of the tree.
    fileprivate static func tell(ofDetached places: [String]) {
      guard !places.isEmpty else { return }
      Output.note(
        "what was mounted below it is out of the tree with it\(names(places)); programs that use that go on to do so")
    }

    /// Which places, for a person alone: they may lie in a vault.
    private static func names(_ places: [String]) -> String {
      guard Session.present.errors.isTerminal else { return "" }
      return ": " + places.map { PathText.shown(Array($0.utf8)) }.joined(separator: ", ")
    }
  }

  extension MountCommand: ServedCommand {}
  extension UnmountCommand: ServedCommand {}
#endif
