extension ImageRequest {
    /// Which caches a request may read and write, and whether it may fetch.
    public struct Caching: Sendable, Hashable {
        /// What may be done with one cache.
        public struct Access: OptionSet, Sendable, Hashable {
            /// The options as bits.
            public let rawValue: Int

            /// Options from their bits.
            public init(rawValue: Int) { self.rawValue = rawValue }

            /// It may be looked into.
            public static let read = Access(rawValue: 1)
            /// It may be added to.
            public static let write = Access(rawValue: 2)
            /// Both.
            public static let all: Access = [.read, .write]
        }

        /// Decoded pictures in memory.
        public var memory: Access
        /// Processed pictures on the disk, where the pipeline stores such.
        public var disk: Access
        /// Bytes as they were fetched, on the disk.
        public var originals: Access
        /// Whether what is in no cache may be fetched. If not, the load fails with `.notCached`.
        public var network: Bool

        /// All of them by default.
        public init(
            memory: Access = .all, disk: Access = .all, originals: Access = .all, network: Bool = true
        ) {
            self.memory = memory
            self.disk = disk
            self.originals = originals
            self.network = network
        }

        /// The disk is neither read nor written.
        public static let memoryOnly = Caching(disk: [], originals: [])
        /// What is cached, and nothing else.
        public static let cacheOnly = Caching(network: false)
        /// Fetched anew, and stored.
        public static let reload = Caching(memory: .write, disk: .write, originals: .write)
        /// Fetched anew, and not stored.
        public static let none = Caching(memory: [], disk: [], originals: [])
    }
}
