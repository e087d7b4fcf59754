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
/// is never idle, and never ends), and answers that the client takes too slowly, or not at all.
final class ConnectionGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// Bytes a second that a client takes of an answer at least, once it has not taken all at once.
  static let leastRate: Int64 = 1024

  private let counts: ConnectionCounts
  private let requestTime: TimeAmount
  private let answerTime: TimeAmount
  private var network: String?
  private var deadline: Scheduled<Void>?
  private var answerDeadline: Scheduled<Void>?
  /// Bytes of answers that went through here since the last look, and what waited for the client then.
  private var written = 0
  private var waitedBefore = 0

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

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if answerDeadline != nil, case .body(let buffer) = unwrapOutboundIn(data) { written += buffer.readableBytes }
    context.write(data, promise: promise)
  }

  /// From when more is written than the client takes until it has all of it, it is looked at from time to time how much it
  /// took meanwhile: an answer that is taken a little at a time holds its memory, and its request, as one that is not.
  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if !context.channel.isWritable, answerDeadline == nil {
      (written, waitedBefore) = (0, waiting(in: context.channel))
      watch(context)
    }
    context.fireChannelWritabilityChanged()
  }

  private func watch(_ context: ChannelHandlerContext) {
    answerDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: answerTime) { [self] in look(context) }
  }

  private func look(_ context: ChannelHandlerContext) {
    answerDeadline = nil
    let waiting = waiting(in: context.channel)
    guard waiting > 0 else { return }
    let taken = Int64(waitedBefore + written - waiting)
    let least = Self.leastRate * answerTime.nanoseconds / 1_000_000_000
    guard taken >= least else { return context.close(promise: nil) }
    (written, waitedBefore) = (0, waiting)
    watch(context)
  }

  /// Bytes that the client has not taken yet.
  private func waiting(in channel: any Channel) -> Int {
    (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
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
