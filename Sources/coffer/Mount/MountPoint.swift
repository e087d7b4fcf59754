#if canImport(CofferMount)
  internal import CofferFiles
  internal import CofferMount
  internal import CofferSystem
  internal import Foundation

  /// A folder of the system that a vault is mounted on, or shall be.
  struct MountPoint {
    /// A canonical path.
    let path: String

    /// A mount point whose server is gone cannot be looked at, only the folder that it lies in.
    ///
    /// - Parameter isEnding: it may lie in a mount, or be one, whose server answers nobody. Throws soon then.
    init(_ argument: String, isEnding: Bool = false) throws {
      guard !argument.isEmpty else { throw Failure.usage("the name of the folder is empty") }
      guard isEnding else {
        try self.init(resolving: argument, isEnding: false)
        return
      }
      // Whatever the system is asked of a path, of that of the working folder too, may end there.
      let session = Session.present
      let found = BriefAnswer.within(2) {
        session.run { Result { try MountPoint(resolving: argument.fromRoot, isEnding: true) } }
      }
      guard let found else { throw Failure(MountError.silent) }
      self = try found.get()
    }

    private init(resolving argument: String, isEnding: Bool) throws {
      let named = try FileSystem().pathNamed(argument).withoutTrailingSlashes
      if let bytes = Mounts.canonicalPath(named) {
        guard let path = String(validating: bytes, as: UTF8.self) else {
          throw Failure.usage(
            "the name of the folder, or of one above it, is not UTF-8: "
              + (isEnding
                ? "no mount can be ended by it; give it another one"
                : "a vault cannot be mounted there; choose another one"))
        }
        self.path = path
        return
      }
      let url = URL(filePath: named).standardizedFileURL
      guard let bytes = Mounts.canonicalPath(url.deletingLastPathComponent().path) else {
        throw Failure.notFound("\(PathText.shown(Array(argument.utf8))): no such folder; make an empty one first")
      }
      let parent = String(decoding: bytes, as: UTF8.self)
      path = (parent == "/" ? "" : parent) + "/" + url.lastPathComponent
    }

    private var shown: String { PathText.shown(Array(path.utf8)) }

    /// Opens the folder itself. Throws what a person can do something about.
    private func opened() throws -> OwnedDescriptor {
      do {
        return try FileSystem().open(path, .directory)
      } catch {
        if error.isDenied {
          throw Failure.cannotCreate(
            "\(shown) is not yours to read, or a folder above it is not yours to pass; choose a folder of yours")
        }
        guard error.isAbsent else { throw error }
        guard try FileSystem().status(of: path) == nil else { throw Failure.usage("\(shown) is no folder") }
        throw Failure.notFound("\(shown): no such folder; make an empty one first")
      }
    }

    /// Throws unless a vault can be mounted here.
    func requireEmpty(_ options: GlobalOptions) throws {
      if Mounts.isDead(at: path) {
        throw Failure.cannotCreate(
          "a mount whose agent is gone still lies there; clear it away with: coffer unmount "
            + path.quotedForShell)
      }
      if Mounts.isVault(at: path) {
        throw Failure.cannotCreate(
          "a vault is mounted there already; end that first with: coffer unmount " + path.quotedForShell)
      }
      let folder = try opened()
      guard try !options.isInVault(path) else {
        throw Failure.usage("a vault cannot be mounted on its own folder, or inside it; choose another one")
      }
      guard try FileSystem().names(in: folder).isEmpty else {
        throw Failure.cannotCreate(
          "\(shown): the folder is not empty, and what is in it would be hidden. Programs may have written to it while nothing was "
            + "mounted there: then it is not encrypted, and can be moved into the mount. Choose an empty folder")
      }
    }
  }

  extension String {
    /// An absolute path instead of a relative one, by what the system remembers of this process's folder: to go up from it by `..` would
    /// ask the file system that it lies in. The same where that cannot be said.
    fileprivate var fromRoot: String {
      // In the agent a path is looked up by the text that its client typed.
      guard Session.present.container == nil, !hasPrefix("/"), let folder = Mounts.canonicalPath(".") else {
        return self
      }
      let slash = UInt8(ascii: "/")
      var folders = folder.split(separator: slash)
      var names = Array(utf8).split(separator: slash)[...]
      while let step = names.first, step.elementsEqual(".".utf8) || step.elementsEqual("..".utf8) {
        names.removeFirst()
        if step.elementsEqual("..".utf8) { _ = folders.popLast() }
      }
      let path = (folders + names).flatMap { [slash] + $0 }
      return path.isEmpty ? "/" : String(validating: path, as: UTF8.self) ?? self
    }

    /// A path that ends in a slash, or one and a dot, has the system look at what is mounted there.
    fileprivate var withoutTrailingSlashes: String {
      var path = self[...]
      while let ending = ["/", "/."].first(where: { path.hasSuffix($0) && path.count > $0.count }) {
        path = path.dropLast(ending.count)
      }
      return String(path)
    }

    /// As one word for a shell, that cannot steer the terminal that shows it.
    var quotedForShell: String {
      if PathText.shown(Array(utf8)) != self {
        let escaped = unicodeScalars.map { scalar in
          let text = String(scalar)
          if scalar == "\\" || scalar == "'" { return "\\" + text }
          if PathText.shown(Array(text.utf8)) == text { return text }
          return text.utf8.map { "\\x" + [$0].hexadecimal }.joined()
        }
        return "$'" + escaped.joined() + "'"
      }
      let isPlain = !isEmpty && unicodeScalars.allSatisfy { CharacterSet.plainInShell.contains($0) }
      return isPlain ? self : "'" + replacing("'", with: "'\\''") + "'"
    }
  }

  extension CharacterSet {
    fileprivate static let plainInShell = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "/._-+:@%,="))
  }

  extension Failure {
    /// - Parameter place: of the mount that is meant, where that is to be said.
    init(_ error: MountError, at place: String? = nil) {
      let code: Int32 =
        switch error {
        case .noDevice, .deviceRefused, .noHelper: 69
        case .failed, .othersRefused, .pagesLost: 73
        case .noThread, .busy, .busyBelow, .silent, .maybeSilent, .notStored: 75
        case .notMounted: 66
        case .foreign: 64
        case .notYours, .locked, .killed: 77
        }
      let text = error.text(namingPrograms: Session.present.errors.isTerminal)
      switch (error, place) {
      case (.notMounted, let place?), (.foreign, let place?):
        self.init(code: code, text: "\(PathText.shown(Array(place.utf8))): \(text)")
      default: self.init(code: code, text: text)
      }
    }
  }
#endif
