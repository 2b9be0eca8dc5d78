extension LoopbackServer {
    /// What stopped the server, or the exchange that a handler was busy with: an operation of the system that failed,
    /// a peer that went away, a body that broke the rules.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// What failed, in words.
        public let reason: String

        /// The system's error number, if it came from the system.
        public let code: Int32?

        /// Whether the connection is gone, so that there is nobody left to answer.
        let isConnectionLoss: Bool

        /// The reason, with the system's word for the error number.
        public var description: String {
            guard let code else { return reason }
            return "\(reason): \(System.message(of: code)) (\(code))"
        }

        init(_ reason: String, code: Int32? = nil, isConnectionLoss: Bool = false) {
            self.reason = reason
            self.code = code
            self.isConnectionLoss = isConnectionLoss
        }

        static func connection(_ reason: String, code: Int32? = nil) -> Failure {
            Failure(reason, code: code, isConnectionLoss: true)
        }
    }
}
