import Tern
import TernConcurrency

// Failures that would only repeat themselves, and the user as whom a request was sent.

extension ImagePipeline {
    /// Returns the key of what is sent for an image. Requests for one image by `hooks.cacheKey` can differ in it, and
    /// one of them can fail where another succeeds: the signature of its URL has expired.
    nonisolated func sentKey(of request: ImageRequest) -> SourceKey {
        cacheKey == nil ? key(of: request).source : ImageKey(request, in: partition(of: request)).source
    }

    /// Returns whether the result of a request that was sent is also that of another one, which has joined its load. A
    /// definite failure says nothing about a request that differs in what is sent.
    nonisolated func answers<Value>(
        _ result: Result<Value, ImageError>, of sent: ImageRequest, to request: ImageRequest
    ) -> Bool {
        guard cacheKey != nil, case .failure(let error) = result, error.isRemembered || error.kind == .failedBefore
        else { return true }
        return sentKey(of: sent) == sentKey(of: request)
    }

    /// Returns the user as whom a request would be sent now.
    func user(of request: ImageRequest) -> ImageUser {
        guard var sent = request.source.request else { return .nobody }
        if configuration.hooks.prepare != nil { return .unknown }
        if !request.options.handlesCookies, sent.cookies == nil { sent.cookies = CookieUse.none }
        switch configuration.session.user(of: sent) {
        case .nobody: return .nobody
        case .fields(let hash): return .fields(hash)
        case .unknown: return .unknown
        }
    }

    /// Returns the remembered failure of a request; nil without one.
    func rememberedFailure(of request: ImageRequest) -> ImageError? {
        if failures.isEmpty { return nil }
        return failures.error(for: sentKey(of: request), at: now) { user(of: request) }
    }

    /// Forgets the remembered failure of a request that loads in spite of it.
    func forgetFailure(ifIgnoredBy request: ImageRequest) {
        guard !failures.isEmpty, request.options.ignores(rememberedFailure(of: request)) else { return }
        failures.remove(sentKey(of: request))
    }

    /// The time since the pipeline was created.
    var now: Duration { clock.now() }

    /// Remembers a failure that would only repeat itself. Files and closures are exempt: they cost no network, and the
    /// program may have repaired them.
    ///
    /// - Parameter user: The user as whom the request was sent.
    func recordFailure(_ error: ImageError, of request: ImageRequest, user: ImageUser) {
        guard error.isRemembered, request.source.request != nil else { return }
        failures.record(error, for: sentKey(of: request), at: now, user: user)
        watchNetwork()
    }

    /// Forgets failures when the network comes back. The watch starts with the first failure.
    private func watchNetwork() {
        guard networkWatch == nil, let reachability = configuration.reachability else { return }
        let statuses = reachability.statuses
        networkWatch = Task { [weak self] in
            var wasReachable = true
            for await status in statuses {
                if status.isReachable, !wasReachable { await self?.forgetFailures() }
                wasReachable = status.isReachable
                if self == nil { return }
            }
        }
    }
}
