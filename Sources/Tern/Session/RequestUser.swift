/// The user as whom a session sends a request.
package enum RequestUser: Sendable, Hashable {
    /// The session adds neither cookies nor an authorization.
    case nobody
    /// A hash value of the cookies and the authorization that the session adds, valid in this process.
    case fields(Int)
    /// The user is known only when the request is sent.
    case unknown
}

extension Session {
    /// Returns the user as whom the session would send a request now.
    package nonisolated func user(of request: Request) -> RequestUser {
        if tasks.configuration.hasUnknownUser { return .unknown }
        let sendsCookies = request.cookies.map { $0.makeStore() != nil } ?? (tasks.cookies != nil)
        guard sendsCookies || tasks.hasCredentials || tasks.authorizations.hasAny else { return .nobody }
        // A request that cannot be sent has no user.
        guard let prepared = try? PreparedRequest(request, registry: tasks, delivery: .collected) else {
            return .nobody
        }
        let fields = prepared.presentSessionFields
        if fields.cookies == nil, fields.authorization == nil { return .nobody }
        var hasher = Hasher()
        hasher.combine(fields.cookies)
        hasher.combine(fields.authorization?.credential.identity)
        return .fields(hasher.finalize())
    }
}

extension NetworkExchange {
    /// Creates the exchange of a request that is not going to be sent, to find out what the cache would do.
    ///
    /// - Throws: An error of kind `.invalidRequest` for a request that cannot be sent.
    package init(explaining request: Request, of session: Session) throws(NetworkError) {
        let registry = session.tasks
        let prepared = try PreparedRequest(request, registry: registry, delivery: .collected)
        let record = TaskRecord(id: registry.nextID(), registry: registry, request: prepared, valueType: Void.self)
        // It never starts.
        record.fail()
        self.init(prepared: prepared, task: record, network: AttemptStage())
    }
}
