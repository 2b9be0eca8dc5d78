extension Session {
    /// How far an upload or a download has come.
    public struct Progress: Sendable, Hashable {
        /// Bytes of the body moved so far; a resumed download starts at its offset. Never falls. Of a compressed response
        /// the bytes after decompression.
        public let completedBytes: Int64
        /// Bytes of the whole body; nil while, or if, the length is not known.
        public let totalBytes: Int64?
        /// Bytes per second over about the last three seconds; nil until it can be told.
        public let bytesPerSecond: Double?
        /// Whether this is the last element: the transfer has ended, well or not.
        public let isFinished: Bool

        /// An element by hand, for tests and previews of what shows progress.
        public init(
            completedBytes: Int64 = 0, totalBytes: Int64? = nil, bytesPerSecond: Double? = nil, isFinished: Bool = false
        ) {
            self.completedBytes = completedBytes
            self.totalBytes = totalBytes
            self.bytesPerSecond = bytesPerSecond
            self.isFinished = isFinished
        }

        /// From 0 to 1; nil while the length is not known. An empty body counts as 1 once it has ended.
        public var fractionCompleted: Double? {
            guard let totalBytes else { return nil }
            guard totalBytes > 0 else { return isFinished ? 1 : 0 }
            return min(1, Double(completedBytes) / Double(totalBytes))
        }

        /// An estimate from the throughput; nil until it can be told, zero at the end.
        public var estimatedTimeRemaining: Duration? {
            if isFinished { return .zero }
            guard let totalBytes, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
            return .seconds(Double(max(0, totalBytes - completedBytes)) / bytesPerSecond)
        }
    }
}
