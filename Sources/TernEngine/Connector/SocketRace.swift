#if os(Linux)
/// The owner of a race.
protocol SocketRaceOwner: AnyObject {
    /// Called with the socket that connected first. It belongs to the owner, which makes itself its handler.
    func race(_ race: SocketRace, didConnect socket: SocketRegistration, to address: SocketAddress)
    /// Called when no address could be connected to.
    func race(_ race: SocketRace, didFail error: SystemError)
}

/// Opens sockets to the addresses of a host until one connects. Confined to the loop's thread.
///
/// `HappyEyeballs` decides which socket is opened or closed, and when; this class makes the system calls. It ends with
/// one call to its owner, or with `cancel()`, and can be started again then.
final class SocketRace {
    /// A socket that connects.
    private final class Racer: SocketHandler {
        let index: Int
        let address: SocketAddress
        unowned let race: SocketRace
        var socket: SocketRegistration?

        init(_ index: Int, _ address: SocketAddress, in race: SocketRace) {
            self.index = index
            self.address = address
            self.race = race
        }

        func socketIsReady(_ events: SocketEvents) { race.isReady(self) }

        func close(_ context: LoopContext) {
            guard let socket else { return }
            self.socket = nil
            context.forget(socket)
            Socket.close(socket.descriptor)
        }
    }

    private let context: LoopContext
    private let localEndpoint: LocalEndpoint
    private weak var owner: (any SocketRaceOwner)?
    private var race = HappyEyeballs([])
    private var racers: [Racer] = []
    private var isRunning = false
    private lazy var timer = LoopTimer(self)

    /// - Parameter localEndpoint: The address or interface of this side, which each socket is bound to.
    init(from localEndpoint: LocalEndpoint, context: LoopContext, owner: any SocketRaceOwner) {
        self.localEndpoint = localEndpoint
        self.context = context
        self.owner = owner
    }

    /// Starts to connect. The owner can be called before this method returns.
    func start(to addresses: [SocketAddress]) {
        isRunning = true
        race = HappyEyeballs(addresses)
        proceed()
    }

    /// Closes all sockets, without a call to the owner.
    func cancel() {
        isRunning = false
        context.cancel(timer)
        for racer in racers { racer.close(context) }
        racers = []
    }

    private func proceed() {
        while isRunning {
            switch race.next(now: context.now) {
            case .connect(let index): open(index)
            case .abandon(let index): racers.first { $0.index == index }?.close(context)
            case .wait(let time): return context.schedule(timer, at: time ?? .max)
            case .won(let index): return finish(index)
            case .failed(let error):
                cancel()
                owner?.race(self, didFail: error)
            }
        }
    }

    private func open(_ index: Int) {
        let address = race.addresses[index]
        do throws(SystemError) {
            let descriptor = try Socket.open(for: address)
            let attempt: Socket.Attempt
            do throws(SystemError) {
                try Socket.bind(descriptor, to: localEndpoint, for: address)
                attempt = Socket.connect(descriptor, to: address)
                if case .failed(let error) = attempt { throw error }
            } catch {
                Socket.close(descriptor)
                throw error
            }
            let racer = Racer(index, address, in: self)
            guard let registration = context.watch(descriptor, for: .writable, handler: racer) else {
                let error = SystemError.last
                Socket.close(descriptor)
                throw error
            }
            racer.socket = registration
            racers.append(racer)
            if attempt == .connected { race.connected(index) }
        } catch {
            race.failed(index, error: error)
        }
    }

    private func isReady(_ racer: Racer) {
        guard let socket = racer.socket else { return }
        switch Socket.finishConnecting(socket.descriptor, to: racer.address) {
        case .pending: return
        case .connected: race.connected(racer.index)
        case .failed(let error):
            racer.close(context)
            race.failed(racer.index, error: error)
        }
        proceed()
    }

    private func finish(_ index: Int) {
        guard let winner = racers.first(where: { $0.index == index }), let socket = winner.socket else { return }
        winner.socket = nil
        cancel()
        owner?.race(self, didConnect: socket, to: winner.address)
    }
}

extension SocketRace: TimerHandler {
    func timerFired(_ timer: LoopTimer) { proceed() }
}
#endif
