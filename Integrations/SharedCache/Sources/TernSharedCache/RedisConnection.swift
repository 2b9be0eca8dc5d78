import CTernRedis

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A connection to the server, used by the thread that made it.
@safe final class RedisConnection {
    /// A reply to a command.
    enum Reply: Equatable {
        case nothing
        case bytes([UInt8])
        case integer(Int64)
        case status
    }

    private let connection: OpaquePointer
    private let configuration: RedisStore.Configuration

    /// Connects, and sends the password.
    init(_ configuration: RedisStore.Configuration) throws(RedisStoreError) {
        var failure = Int32(0)
        let timeout = configuration.connectTimeout.milliseconds
        // A reply is a value, with its head and those of the other replies of its pipeline.
        let limit = configuration.valueByteLimit + StoredValue.headCount + 64 << 10
        let connection =
            switch configuration.place {
            case .unixSocket(let path): unsafe ctern_redis_connect(path, nil, 0, timeout, limit, &failure)
            case .host(let name, let port): unsafe ctern_redis_connect(nil, name, Int32(port), timeout, limit, &failure)
            }
        guard let connection = unsafe connection else { throw Self.error(failure) }
        unsafe self.connection = connection
        self.configuration = configuration
        try logIn()
    }

    deinit { unsafe ctern_redis_close(connection) }

    private func logIn() throws(RedisStoreError) {
        var commands: [[String]] = []
        if let password = configuration.password {
            commands.append(["AUTH"] + (configuration.user.map { [$0] } ?? []) + [password])
        }
        if configuration.database != 0 { commands.append(["SELECT", "\(configuration.database)"]) }
        if commands.isEmpty { return }
        do throws(RedisStoreError) {
            _ = try run(commands.map { RedisCommand($0) })
        } catch {
            guard error.kind == .refused else { throw error }
            throw RedisStoreError(.notPermitted, error.reason)
        }
    }

    /// Sends commands together, and returns their replies in the same order.
    ///
    /// - Throws: `refused` if a reply is an error, after all replies were read. The connection is good for other
    ///   commands then.
    func run(_ commands: [RedisCommand]) throws(RedisStoreError) -> [Reply] {
        let idle = configuration.operationTimeout.milliseconds
        unsafe ctern_redis_begin(connection, idle, Int32(clamping: Int64(idle) * 4))
        for command in commands {
            let count = Int32(command.lengths.count)
            let code = unsafe ctern_redis_append(connection, command.bytes, command.lengths, count)
            if Int(code) != CTERN_REDIS_OK { throw Self.error(code) }
        }
        var replies: [Reply] = []
        var refusal: RedisStoreError?
        for _ in commands {
            var reply = unsafe ctern_redis_reply()
            let code = unsafe ctern_redis_next(connection, &reply)
            guard Int(code) == CTERN_REDIS_OK else { throw Self.error(code) }
            let bytes = unsafe [UInt8](UnsafeBufferPointer(start: reply.bytes, count: reply.length))
            switch unsafe Int(reply.type) {
            case CTERN_REDIS_NIL: replies.append(.nothing)
            case CTERN_REDIS_BYTES: replies.append(.bytes(bytes))
            case CTERN_REDIS_INTEGER: replies.append(.integer(unsafe reply.integer))
            case CTERN_REDIS_STATUS: replies.append(.status)
            default:
                refusal = refusal ?? Self.refusal(bytes)
                replies.append(.nothing)
            }
        }
        if let refusal { throw refusal }
        return replies
    }

    /// Returns the error for an error reply. Its first word is a code. The rest is left out, because it can repeat the
    /// arguments of a command, such as the password.
    private static func refusal(_ text: [UInt8]) -> RedisStoreError {
        let word = text.prefix(32).prefix { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        let code = String(decoding: word, as: UTF8.self)
        let isPermission = ["NOAUTH", "WRONGPASS", "NOPERM"].contains(code)
        return RedisStoreError(isPermission ? .notPermitted : .refused, "the server answered with an error: \(code)")
    }

    private static func error(_ code: Int32) -> RedisStoreError {
        switch Int(code) {
        case CTERN_REDIS_TIMED_OUT: RedisStoreError(.timedOut, "the server did not answer in time")
        case CTERN_REDIS_CLOSED:
            RedisStoreError(.unreachable, "the server cannot be reached, or closed the connection")
        case CTERN_REDIS_NO_MEMORY: RedisStoreError(.noResources, "the system has no more memory")
        default: RedisStoreError(.malformedReply, "the server sent no valid reply, or one that is too long")
        }
    }
}

/// A command with its arguments, one after the other.
struct RedisCommand: Sendable {
    private(set) var bytes: [UInt8] = []
    private(set) var lengths: [Int] = []

    init(_ arguments: [String]) {
        for argument in arguments { add(argument.utf8) }
    }

    mutating func add(_ argument: some Collection<UInt8>) {
        bytes += argument
        lengths.append(argument.count)
    }
}

extension Duration {
    /// The milliseconds, at least 1.
    var milliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000)
        return isTooLong ? Int32.max : max(1, Int32(clamping: product + attoseconds / 1_000_000_000_000_000))
    }
}
