#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Session {
    /// A session whose transfers the system carries on while the app is suspended, and after it was ended: **on Apple's
    /// systems only**.
    ///
    /// The tasks that the system kept from an earlier run are taken back: they stand in `tasks`, with the label and the
    /// priority that they had, when `prepare` is called, and no event is told of them before that. Their closures ended
    /// with the process that gave them, so `configuration.destination` says where their files go; without one, each file
    /// stays in the temporary folder and is named by the event `.completed`.
    ///
    /// ```swift
    /// let session = try await Session.background("com.example.transfers", configuration: configuration) { session in
    ///     follow(session.tasks.events)
    /// }
    /// ```
    ///
    /// What such a session starts is delivered when it is whole: the system puts bodies into files, follows redirects by
    /// itself, and has time limits of its own. There may be one session of an identifier at a time.
    ///
    /// - Parameters:
    ///   - identifier: The name under which the system keeps the tasks, the same in every run.
    ///   - prepare: Called once, with the session, before its first event.
    ///   - eventsDelivered: Called when the system has told all that happened while the app was not running: the place
    ///     to call the completion handler of `application(_:handleEventsForBackgroundURLSession:completionHandler:)`.
    /// - Throws: `NetworkError` of kind `.unsupported` where the system carries no transfers on.
    public static func background(
        _ identifier: String, configuration: Configuration = Configuration(),
        prepare: (Session) -> Void = { _ in }, eventsDelivered: (@Sendable () -> Void)? = nil
    ) async throws(NetworkError) -> Session {
        #if os(Linux)
        throw NetworkError(.unsupported, reason: "this system carries no transfers on without their process")
        #else
        let mode = URLSessionHub.Mode(identifier: identifier, usesFiles: true, eventsDelivered: eventsDelivered)
        let hub = URLSessionHub(URLSessionSettings(configuration), mode: mode)
        let kept = SystemKeptTasks(session: hub.openSession())
        return await background(configuration, hub, keeping: kept, prepare: prepare)
        #endif
    }
}
