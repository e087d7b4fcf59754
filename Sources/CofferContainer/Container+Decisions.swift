public import CofferPolicy
internal import CofferVault

/// What the gate decided, as the device keeps it.
extension Container {
  /// All that is kept here, the oldest first: numbers, and the exact texts of ``DecisionRecord``.
  public func decisions() throws -> [(number: Int64, text: String)] {
    try ContainerError.catching { try gate.decisions.all() }
  }

  /// Whether what is kept here is a chain.
  public func verifyDecisions() throws -> DecisionChain { try ContainerError.catching { try gate.decisions.verify() } }

  /// Decisions that the company does not have yet, the oldest first, durable here before anyone else hears of them.
  public func undeliveredDecisions(limit: Int) throws -> [(number: Int64, text: String)] {
    try ContainerError.catching {
      let entries = try gate.decisions.undelivered(limit: limit)
      if !entries.isEmpty { try commitChanges() }
      return entries
    }
  }

  /// The company has everything up to `number`; without a gap it has what is up to `complete`.
  public func noteDecisions(deliveredThrough number: Int64, companyHas complete: Int64) throws {
    try ContainerError.catching { try gate.decisions.noteDelivered(through: number, companyHas: complete) }
  }
}
