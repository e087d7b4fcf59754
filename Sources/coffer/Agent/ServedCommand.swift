internal import ArgumentParser

/// A command that the agent runs for its client, where one holds the vault. What it needs of a process it takes from
/// `Session.present`, where it also asks the person for what it must.
protocol ServedCommand: ParsableCommand {
  var options: GlobalOptions { get }
  /// The agent that is to run it, where there is one: the agent of its vault, but for commands that can do without one.
  func agent() throws -> AgentClient?
  /// What it would start an agent with; nil for one that starts none.
  var agentSettings: AgentSettings? { get }
  /// What to do where the agent was killed while it ran the command; nil for what is the same for all.
  var adviceWithoutAgent: String? { get }
}

extension ServedCommand {
  func agent() throws -> AgentClient? { try AgentClient.connect(options) }
  var agentSettings: AgentSettings? { nil }
  var adviceWithoutAgent: String? { nil }
}

extension InfoCommand: ServedCommand {}
extension VerifyCommand: ServedCommand {}
extension PasscodeCommand: ServedCommand {}
extension BackupCommand: ServedCommand {}
extension PutCommand: ServedCommand {}
extension GetCommand: ServedCommand {}
extension CatCommand: ServedCommand {}
extension ListCommand: ServedCommand {}
extension StatCommand: ServedCommand {}
extension MakeDirectoryCommand: ServedCommand {}
extension MoveCommand: ServedCommand {}
extension RemoveCommand: ServedCommand {}
extension ProtectCommand: ServedCommand {}
extension ImportCommand: ServedCommand {}
extension ExportCommand: ServedCommand {}
extension EnrollCommand: ServedCommand {}
extension PolicyShowCommand: ServedCommand {}
extension PolicyRefreshCommand: ServedCommand {}
extension PolicyWatchCommand: ServedCommand {}
extension AuditShowCommand: ServedCommand {}
extension AuditVerifyCommand: ServedCommand {}
extension AppsCommand: ServedCommand {}
extension AppInstallCommand: ServedCommand {}
extension AppListCommand: ServedCommand {}
extension AppRemoveCommand: ServedCommand {}
extension ShareCommand: ServedCommand {}
