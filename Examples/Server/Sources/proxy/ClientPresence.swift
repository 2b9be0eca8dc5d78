import NIOCore
import Synchronization

/// Notices when the client of a connection leaves, also while nothing is written to it.
///
/// A client that has closed its side of the connection counts as one that has left, as with other proxies.
final class ClientPresence: ChannelInboundHandler, RemovableChannelHandler, Sendable {
    typealias InboundIn = Never

    private struct State {
        var isGone = false
        var action: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// Calls a closure when the client leaves, or at once if it has left. The closure replaces that of the request
    /// before on the same connection.
    func whenGone(_ action: @escaping @Sendable () -> Void) {
        let isGone = state.withLock { state in
            state.action = state.isGone ? nil : action
            return state.isGone
        }
        if isGone { action() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { leave() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    private func leave() {
        let action = state.withLock { state in
            state.isGone = true
            return state.action.take()
        }
        action?()
    }
}
