internal import CofferSystem
internal import Hummingbird

/// The pages by which people administer their company, on the same origin as the API.
///
/// A form does what a request to the API does: it becomes one, and the same code answers it. So there is nothing that
/// the console may and the API may not, and one audit.
struct Console: Sendable {
  let server: PolicyServer

  var store: any PolicyStore { server.store }

  /// Everything that the console answers. There is no other place where a page or a form comes from.
  var routes: [ConsoleRoute] {
    entrance + overview + apps + policyPages + devices + orders + deviceRecords + groups + enrolment + audit + people
      + keys + account + [
        ConsoleRoute(method: .get, path: "/", access: .redirect("/console")),
        ConsoleRoute(method: .get, path: RouterPath(Asset.style.path.text), access: .asset(.style)),
        ConsoleRoute(method: .get, path: RouterPath(Asset.script.path.text), access: .asset(.script)),
        ConsoleRoute(method: .get, path: "/console/events", access: .stream(streamNews)),
      ]
  }

  private var policyPages: [ConsoleRoute] {
    rules + simulator + drafts + draftRules + draftContents + revisions + fileTypes + classifications + settings
      + settingReports
  }

  private var deviceRecords: [ConsoleRoute] { deviceDecisions + deviceLogs }

  /// Where people reach the server: as its operator said, or as this person does.
  func address(_ visit: Visit) -> String? {
    server.site.address
      ?? visit.call.request.head.authority.map { "\(server.site.isSecure ? "https" : "http")://\($0)" }
  }

  /// What a page can tell of an error. What is not foreseen goes to the log, and says nothing of itself.
  func problem(_ error: any Error) -> HTTPProblem? {
    ProblemMiddleware(log: server.log, metrics: server.metrics).problem(for: error)
  }
}
