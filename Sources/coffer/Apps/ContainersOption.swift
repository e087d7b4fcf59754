internal import ArgumentParser
internal import CofferContainer
internal import CofferSystem

/// Where the apps' containers are.
struct ContainersOption: ParsableArguments {
  @Option(help: ArgumentHelp("The folder of the apps' containers (else COFFER_CONTAINERS).", valueName: "dir"))
  var containers: String?

  func registry(of container: Container) throws -> AppRegistry {
    let path =
      try containers ?? Environment["COFFER_CONTAINERS"]
      ?? Environment.folder("XDG_DATA_HOME", default: ".local/share") + "/coffer/containers"
    return try container.apps(containers: FileSystem().pathNamed(path))
  }
}
