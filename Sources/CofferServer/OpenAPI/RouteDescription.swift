/// What a route's own table does not say of it: what it is for, what its bodies hold, and which refusals are its own.
struct RouteDescription {
  /// What the answer's ETag is for.
  enum Matching {
    /// There is none.
    case none
    /// A later change of it takes the tag.
    case given
    /// A change, whose If-Match is honoured.
    case honoured
    /// A change, which is refused without If-Match.
    case required
  }

  let summary: String
  let takes: Schemas.Name?
  let gives: Schemas.Name?
  let status: Int
  let matching: Matching
  /// Whether it is a list that `cursor` and `limit` go through.
  let isPaged: Bool
  /// Whether it makes something, once for each `Idempotency-Key`.
  let isMaking: Bool
  /// Beyond those that follow from the route itself.
  let problems: [HTTPProblem.Name]

  private init(
    _ summary: String, takes: Schemas.Name? = nil, gives: Schemas.Name? = nil, status: Int = 200,
    matching: Matching = .none, isPaged: Bool = false, isMaking: Bool = false, problems: [HTTPProblem.Name] = []
  ) {
    self.summary = summary
    self.takes = takes
    self.gives = gives
    self.status = status
    self.matching = matching
    self.isPaged = isPaged
    self.isMaking = isMaking
    self.problems = problems
  }

  static func list(_ summary: String, _ gives: Schemas.Name) -> Self {
    Self(summary, gives: gives, isPaged: true)
  }

  /// Something that is read; with a tag where it can be changed.
  static func show(
    _ summary: String, _ gives: Schemas.Name?, tagged: Bool = false, problems: [HTTPProblem.Name] = []
  ) -> Self {
    Self(summary, gives: gives, matching: tagged ? .given : .none, problems: problems)
  }

  static func make(
    _ summary: String, _ takes: Schemas.Name, _ gives: Schemas.Name, problems: [HTTPProblem.Name] = []
  ) -> Self {
    Self(summary, takes: takes, gives: gives, status: 201, isMaking: true, problems: problems)
  }

  static func change(
    _ summary: String, _ takes: Schemas.Name?, _ gives: Schemas.Name, _ matching: Matching = .required,
    problems: [HTTPProblem.Name] = []
  ) -> Self {
    Self(summary, takes: takes, gives: gives, matching: matching, problems: problems)
  }

  static func remove(
    _ summary: String, _ matching: Matching = .required, problems: [HTTPProblem.Name] = []
  ) -> Self {
    Self(summary, status: 204, matching: matching, problems: problems)
  }

  /// Anything else.
  static func act(
    _ summary: String, _ takes: Schemas.Name?, _ gives: Schemas.Name? = nil, status: Int? = nil,
    problems: [HTTPProblem.Name] = []
  ) -> Self {
    Self(summary, takes: takes, gives: gives, status: status ?? (gives == nil ? 204 : 200), problems: problems)
  }
}
