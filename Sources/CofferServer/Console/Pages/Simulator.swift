internal import CofferPolicy
internal import Hummingbird

/// What a policy would decide, by the function that devices decide by. Asking changes nothing, so that the question
/// stands in the address and can be sent to somebody.
extension Console {
  var simulator: [ConsoleRoute] { [.page("/console/simulator", .readPolicy, simulatorPage)] }

  @Sendable private func simulatorPage(_ visit: Visit) async throws -> ConsolePage {
    let tenant = try visit.person().administrator.tenant
    let form = try await store.read { transaction in
      SimulatorForm(
        visit: visit,
        apps: try transaction.appRecords(tenant: tenant, after: 0, limit: 500).map(\.value),
        names: try PolicyNames(of: tenant, in: transaction),
        drafts: try transaction.resources(.draft, tenant: tenant).map { try $0.decoded(PolicyDraft.self) })
    }
    let (asked, inForce) = try await answers(form)
    return ConsolePage("Simulator", in: .simulator) {
      Tag.p {
        "What would be decided? Asking changes nothing. The answer is the one that a device with this policy gives."
      }
      if let asked { form.shown(asked, as: form.source == .inForce ? nil : form.source.name(form.drafts)) }
      if let inForce { form.shown(inForce, as: "What is in force now", isSecond: true) }
      form.html
    }
  }

  /// What the policy that is asked decides; and beside a draft or an earlier revision, what the one in force does.
  private func answers(_ form: SimulatorForm) async throws -> (SimulatorForm.Result?, SimulatorForm.Result?) {
    let question: JSONValue
    do {
      guard let made = try form.question() else { return (nil, nil) }
      question = made
    } catch let problem as HTTPProblem {
      return (.refused(problem), nil)
    }
    let asked = try await ask(question, form.source, form.visit)
    return (asked, form.source == .inForce ? nil : try await ask(question, .inForce, form.visit))
  }

  private struct Simulation: Decodable {
    let decisions: [SimulatorForm.Answer]
  }

  private func ask(
    _ question: JSONValue, _ source: SimulatorForm.Source, _ visit: Visit
  ) async throws -> SimulatorForm.Result? {
    let fields: JSONValue =
      switch source {
      case .inForce: .object(["requests": .array([question])])
      case .draft(let id): .object(["requests": .array([question]), "draft": .string(id)])
      case .revision(let number): .object(["requests": .array([question]), "revision": .integer(number)])
      }
    do {
      let answer = try await server.simulate(visit.asking(fields), visit.caller())
      return try await answer.decoded(Simulation.self).decisions.first.map(SimulatorForm.Result.answer)
    } catch let problem as HTTPProblem where problem.name != .notFound {
      return .refused(problem)
    }
  }
}
