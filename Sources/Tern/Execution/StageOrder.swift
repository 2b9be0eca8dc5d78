extension Stages {
    /// Creates the stages of a session, in their order.
    convenience init(interceptors: [any Interceptor], cache: SessionCache?) {
        let attempt = AttemptStage()
        let exchange: any Stage = cache.map { CacheStage(cache: $0.cache, next: attempt) } ?? attempt
        let followUps = FollowUpStage(next: exchange)
        let acceptance = AcceptanceStage(next: followUps)
        let surrounding = InterceptorStage(interceptors, next: acceptance)
        self.init(
            all: surrounding ?? acceptance, acceptance: acceptance, followUps: followUps, exchange: exchange,
            needsSwiftTask: surrounding?.needsSwiftTask ?? false
        ) { own, next in
            InterceptorStage(own, inside: surrounding, next: next) ?? next
        }
    }
}
