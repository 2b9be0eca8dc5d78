extension RedisStore {
    /// The address of a server, the password, and the limits of a store.
    public struct Configuration: Sendable, CustomStringConvertible, CustomReflectable {
        /// The place of a server.
        public enum Place: Sendable, Hashable, CustomStringConvertible {
            /// The path of a Unix socket.
            case unixSocket(String)
            /// A host and a port. The address of a host is better than its name, whose look-up has no limit of time of
            /// its own.
            case host(String, port: Int = 6_379)

            /// The place as text.
            public var description: String {
                switch self {
                case .unixSocket(let path): "unix:\(path)"
                case .host(let name, let port): "\(name):\(port)"
                }
            }
        }

        /// The place of the server.
        public var place: Place
        /// The name of the user; nil, the default, for the default user.
        public var user: String?
        /// The password; nil, the default, for none. Descriptions leave it out.
        public var password: String?
        /// The number of the database, 0 by default.
        public var database = 0
        /// The beginning of all keys on the server, `tern` by default. Stores with different prefixes share nothing.
        public var prefix = "tern"
        /// The maximum number of connections, each with a thread, 4 by default.
        public var connectionLimit = 4
        /// The time to connect, 100 milliseconds by default.
        public var connectTimeout = Duration.milliseconds(100)
        /// The time without a byte from the server after which an operation fails, 50 milliseconds by default. An
        /// operation takes at most four times as long.
        public var operationTimeout = Duration.milliseconds(50)
        /// The number of failures in a row after which the store sends nothing for a while, 3 by default.
        public var failureLimit = 3
        /// The time for which it sends nothing then, 5 seconds by default. Operations fail at once meanwhile. Then one
        /// of them tries again.
        public var pause = Duration.seconds(5)
        /// The maximum number of operations that wait for a connection, 1,024 by default.
        public var queueLimit = 1_024
        /// The maximum number of bytes of a value, 8 MiB by default. A longer one is neither stored nor read.
        public var valueByteLimit = 8 << 20

        /// Creates a configuration with the defaults.
        public init(_ place: Place) { self.place = place }

        /// The place, the database and the prefix. Without the password.
        public var description: String { "\(place), database \(database), prefix \(prefix)" }

        /// The same for `dump`.
        public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
    }
}
