internal import Hummingbird
internal import NIOCore

/// What a request's handler knows of its connection.
struct ServerContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }

  /// The peer's address without its port. Behind a proxy that is the proxy's: what it says of others is anybody's word.
  var address: String { channel.remoteAddress?.ipAddress ?? "unknown" }
}
