extension IndexSession {
  /// What `transform` makes of each element. It goes on behind one that needs what is not in memory, so that all that is
  /// missing is read together.
  func gather<Element, Result>(
    _ elements: some Sequence<Element>, _ transform: (Element) throws -> Result
  ) throws -> [Result] {
    var results: [Result] = []
    var isComplete = true
    for element in elements {
      do { results.append(try transform(element)) } catch is NotInMemory { isComplete = false }
    }
    guard isComplete else { throw NotInMemory() }
    return results
  }
}
