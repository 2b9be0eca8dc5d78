/// The way of a request past answers that ask for another one: a redirect, or credentials.
struct Course {
    /// The redirects so far, oldest first.
    private(set) var history: [ResponseHead] = []

    /// Whether an answer may be other than the last. One comparison for most.
    static func mayGoOn(_ head: ResponseHead) -> Bool {
        head.status >= 300 && (head.status < 400 || head.status == 401 || head.status == 407)
    }
}

extension RequestPlan {
    /// Sends the request, and what its answers ask for, until one stands.
    func travel(_ record: TaskRecord) async throws(NetworkError) -> Arrival {
        try await sent(record)
    }
}
