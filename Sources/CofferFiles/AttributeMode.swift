/// What storing an extended attribute does where it is there already, or is not.
public enum AttributeMode: Sendable, Hashable, CaseIterable {
  case createOrReplace
  case create
  case replace
}
