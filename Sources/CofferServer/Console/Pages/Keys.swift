internal import CofferCrypto
internal import CofferPolicy
internal import CofferSystem
internal import HTTPTypes
internal import Hummingbird

/// A company's keys: what devices trust, and what can be done when one is lost.
extension Console {
  var keys: [ConsoleRoute] {
    [
      .page("/console/keys", .readPolicy, keysPage),
      .change("/console/keys/rotate", .manageKeys, on: keysPage, rotateKeys),
      .change("/console/keys/wipe", .manageKeys, on: keysPage, delegateWipe),
      .change("/console/keys/escrow", .manageKeys, on: keysPage, delegateEscrow),
      .change("/console/keys/export", .manageKeys, on: keysPage, exportRoot),
    ]
  }

  /// What the API shows of them.
  private struct Keys: Decodable {
    struct Delegated: Decodable {
      let use: Delegation.Use
      let key: String
      let notAfter: Int64
    }

    let rootFingerprint: String
    let rootExportedAt: Int64?
    let keyEpoch: Int64
    let signingKey: String
    let keysetNotAfter: Int64
    let delegations: [Delegated]

    func delegated(_ use: Delegation.Use) -> Delegated? { delegations.first { $0.use == use } }
  }

  @Sendable private func keysPage(_ visit: Visit) async throws -> ConsolePage {
    let answer = try await server.showKeys(visit.asking(), visit.caller())
    let keys = try await answer.decoded(Keys.self)
    let page = KeysPage(visit: visit, tag: answer.headers[.eTag].map { EntityTag(digest: $0.filter { $0 != "\"" }) })
    return ConsolePage("Keys", in: .keys) {
      Tag.p {
        "By these keys, devices tell what your company says from what anybody else says. The private halves are on the "
          + "server, sealed under its server.key."
      }
      Tag.div(.id("live-root"), .data(.live, "")) { root(keys, page) }
      signing(keys, page)
      wiping(keys, page)
      escrow(keys, page)
    }
  }

  /// What the parts of the page share.
  private struct KeysPage {
    let visit: Visit
    let tag: EntityTag?

    var mayChange: Bool { visit.may(.manageKeys) }

    func panel(_ id: String, _ title: String, @HTMLBuilder _ content: () -> HTML) -> HTML {
      Tag.section(.class("panel"), .aria(.labelledby, id)) {
        Tag.h2(.id(id)) { title }
        content()
      }
    }
  }

  private func root(_ keys: Keys, _ page: KeysPage) -> HTML {
    page.panel("root", "Root key") {
      Tag.p {
        "Everything else hangs on it: it says which key signs the policy, and which signs wipes. Devices keep it from the "
          + "moment they join, and it is never changed: if it is lost or learned by others, every device has to join anew."
      }
      Tag.dl {
        Facts.fact("Fingerprint") { Tag.code { keys.rootFingerprint } }
        Facts.fact("Exported") {
          if let time = keys.rootExportedAt { Words.time(time) } else { "not yet" }
        }
      }
      if keys.rootExportedAt != nil {
        Tag.p {
          "It is handed out once. If the file is lost, the server’s own copy, with its server.key, is the only one left."
        }
      } else if page.mayChange {
        Tag.h3 { "Export it" }
        Tag.p {
          "You get a file for a safe, sealed under a passphrase. It can be had once; devices notice nothing of it, and "
            + "the server keeps its own copy. There is no command yet that takes the file back: it is what is left of "
            + "your company’s root when the server is gone."
        }
        let form = Form(page.visit, "/console/keys/export")
        form("Export the root key, once", style: "danger") {
          form.text("Your password", "password", kind: .password, autocomplete: "current-password")
          form.text(
            "Passphrase for the file", "passphrase", kind: .password,
            hint: "12 characters or more. Without it, the file is of no use to anybody; keep it apart from the file.",
            autocomplete: "off")
          form.text("The passphrase again", "again", kind: .password, autocomplete: "off")
        }
      }
    }
  }

  private func signing(_ keys: Keys, _ page: KeysPage) -> HTML {
    page.panel("signing", "Signing key") {
      Tag.p { "It signs each revision of the policy, and every order but a wipe." }
      Tag.dl {
        Facts.fact("Epoch") { "\(keys.keyEpoch)" }
        Facts.fact("Public key") { Tag.code { keys.signingKey } }
        Facts.fact("Signed by the root until") { Words.time(keys.keysetNotAfter) }
      }
      Tag.p(.class("hint")) { "The server has it signed anew by itself, long before that time." }
      if page.mayChange {
        Tag.h3 { "Change it" }
        Tag.p {
          "When somebody may have learned the server’s keys or its backup, and after going back to an older backup. A new "
            + "key begins epoch \(keys.keyEpoch + 1), in which devices refuse whatever the old key signs, however high its "
            + "revision is. Devices take it with the next policy that they fetch, and need not join anew; orders that "
            + "wait are signed anew. A device that does not reach the server goes on by what it has."
        }
        Form(page.visit, "/console/keys/rotate")("Change the signing key", match: page.tag, style: "danger") {}
      }
    }
  }

  private func wiping(_ keys: Keys, _ page: KeysPage) -> HTML {
    page.panel("wipe", "Key for wipes") {
      Tag.p {
        "A wipe cannot be taken back, so that the signing key is not enough for it: the root delegates a key of its own."
      }
      if let own = keys.delegated(.wipe) {
        delegated(own, page)
      } else {
        Tag.p(.class("empty")) { "There is none. The first wipe makes one." }
      }
      if page.mayChange {
        Tag.p { "A new one takes the place of the old. Wipes that wait are signed anew." }
        Form(page.visit, "/console/keys/wipe")(
          keys.delegated(.wipe) == nil ? "Make a key for wipes" : "Change the key for wipes", match: page.tag,
          style: "plain"
        ) {}
      }
    }
  }

  private func escrow(_ keys: Keys, _ page: KeysPage) -> HTML {
    page.panel("escrow", "Escrow key") {
      Tag.p {
        "A vault that is sealed to it can be opened by your company, when a person has left or forgot the passcode. Its "
          + "private half is yours to keep: the server never has it."
      }
      Tag.p(.class("caution")) {
        "Where "
        Tag.a(.href("/console/settings")) { "the settings" }
        " ask for escrow, each vault is sealed to the key that stands here when it is next unlocked, and the person is told. "
          + "Whoever has its private half, and a vault’s folder, reads the vault: a wrong key here lets a stranger in."
      }
      if let own = keys.delegated(.escrow) {
        delegated(own, page)
      } else {
        Tag.p(.class("empty")) { "There is none." }
      }
      if page.mayChange {
        Tag.h3 { keys.delegated(.escrow) == nil ? "Delegate one" : "Put another in its place" }
        Tag.p {
          "Make it where nobody works with it: "
          Tag.code { "coffer escrow keygen company.key" }
          " writes the private half into the file, and prints the public one, which belongs here."
        }
        let form = Form(page.visit, "/console/keys/escrow")
        form("Let the root sign it", match: page.tag) {
          form.text("The public key", "key", hint: "The line that the command prints, whole.")
        }
      }
    }
  }

  private func delegated(_ own: Keys.Delegated, _ page: KeysPage) -> HTML {
    Tag.dl {
      Facts.fact("Public key") { Tag.code { own.key } }
      Facts.fact("Holds until") {
        Words.time(own.notAfter)
        if own.notAfter <= page.visit.now { " – over" }
      }
    }
  }

  @Sendable private func rotateKeys(_ visit: Visit) async throws -> Outcome {
    _ = try await server.rotateKeys(visit.asking(), visit.caller())
    return .see("/console/keys", .rotated)
  }

  @Sendable private func delegateWipe(_ visit: Visit) async throws -> Outcome {
    _ = try await server.delegateKey(visit.asking(.object(["use": .string("wipe")])), visit.caller())
    return .see("/console/keys", .delegated)
  }

  @Sendable private func delegateEscrow(_ visit: Visit) async throws -> Outcome {
    let key = Self.publicKey(visit.values.text("key") ?? "")
    let body: JSONValue = .object(["use": .string("escrow"), "key": .string(key)])
    _ = try await server.delegateKey(visit.asking(body), visit.caller())
    return .see("/console/keys", .delegated)
  }

  /// As the API takes it, of the line that `coffer escrow keygen` prints.
  private static func publicKey(_ text: String) -> String {
    let parts = text.split(separator: " ")
    guard parts.count == 2, parts[0] == "coffer-escrow-public-key-1", let bytes = [UInt8](hexadecimal: parts[1]) else {
      return text
    }
    return Base64URL.encode(bytes)
  }

  @Sendable private func exportRoot(_ visit: Visit) async throws -> Outcome {
    let values = visit.values
    guard values.exact("passphrase") == values.exact("again") else {
      throw HTTPProblem.invalid("again", "is not the same passphrase")
    }
    let body = JSONValue.object([
      "password": .string(values.exact("password")), "passphrase": .string(values.exact("passphrase")),
    ])
    var answer = try await server.exportRootKey(visit.asking(body), visit.person())
    answer.headers[.contentDisposition] = #"attachment; filename="coffer-root-key.json""#
    return .file(answer)
  }
}
