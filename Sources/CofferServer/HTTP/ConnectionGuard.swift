internal import HummingbirdCore
internal import NIOCore
internal import NIOHTTPTypes
internal import Synchronization

/// Counts connections by where they come from.
final class ConnectionCounts: Sendable {
  private let limit: Int
  private let counts = Mutex<[String: Int]>([:])

  init(limit: Int) { self.limit = limit }

  /// `false` when there are too many already. What was entered is to be left.
  func enter(_ network: String) -> Bool {
    counts.withLock { counts in
      guard counts[network, default: 0] < limit else { return false }
      counts[network, default: 0] += 1
      return true
    }
  }

  func leave(_ network: String) {
    counts.withLock { counts in
      let count = counts[network, default: 1] - 1
      counts[network] = count > 0 ? count : nil
    }
  }
}

/// Closes connections of an address that has too many, requests that take too long to arrive (a body of a byte each minute
/// is never idle, and never ends), and answers that the client does not take.
final class ConnectionGuard: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart

  private let counts: ConnectionCounts
  private let requestTime: TimeAmount
  private let answerTime: TimeAmount
  private var network: String?
  private var deadline: Scheduled<Void>?
  private var answerDeadline: Scheduled<Void>?

  init(counts: ConnectionCounts, requestTime: TimeAmount, answerTime: TimeAmount) {
    self.counts = counts
    self.requestTime = requestTime
    self.answerTime = answerTime
  }

  /// What a connection reads at once, at first and at most. A request without a body fits into the first, which is kept
  /// while a stream of events is open.
  private static let readSizes = AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 512, maximum: 64 << 10)

  func handlerAdded(context: ChannelHandlerContext) {
    try? context.channel.syncOptions?.setOption(.recvAllocator, value: Self.readSizes)
    if context.channel.isActive { enter(context) }
  }

  func channelActive(context: ChannelHandlerContext) {
    enter(context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    leave()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { leave() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      let channel = context.channel
      deadline = context.eventLoop.scheduleTask(in: requestTime) { channel.close(mode: .all, promise: nil) }
    case .body: break
    case .end:
      deadline?.cancel()
      deadline = nil
    }
    context.fireChannelRead(data)
  }

  /// While more is written than the client takes, it has a time: otherwise an answer that nobody reads would hold its
  /// memory, and its request, for as long as the client likes.
  func channelWritabilityChanged(context: ChannelHandlerContext) {
    answerDeadline?.cancel()
    answerDeadline = nil
    if !context.channel.isWritable {
      let channel = context.channel
      answerDeadline = context.eventLoop.scheduleTask(in: answerTime) { channel.close(mode: .all, promise: nil) }
    }
    context.fireChannelWritabilityChanged()
  }

  private func enter(_ context: ChannelHandlerContext) {
    guard network == nil, let address = context.channel.remoteAddress?.ipAddress,
      !LoopbackAddress.isLoopback(address)
    else { return }
    let network = SignInLimiter.network(of: address)
    guard counts.enter(network) else { return context.close(promise: nil) }
    self.network = network
  }

  private func leave() {
    for task in [deadline, answerDeadline] { task?.cancel() }
    (deadline, answerDeadline) = (nil, nil)
    if let network { counts.leave(network) }
    network = nil
  }
}
