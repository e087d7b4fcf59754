public import ArgumentParser
public import CofferServer

extension Permission: ExpressibleByArgument {}

extension Role: ExpressibleByArgument {
  static var choices: String { "owner, editor (both change policy) or auditor (reads only)." }
}
