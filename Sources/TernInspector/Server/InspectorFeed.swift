import Tern

/// Decides what the next event of one viewer has, from what the viewer has seen. Pure.
struct InspectorFeed {
    /// The number of looks at a task that runs after which its progress is sent, although nothing else has changed.
    private static let progressLooks = 2

    /// The revision up to which the viewer has all changes.
    private(set) var revision: UInt64 = 0
    private var connections: [Session.OpenConnections]?
    private var isFirst = true
    private var looks = 0
    /// The tasks that run, whose progress changes without a revision.
    private var running: [UInt64: InspectedTask] = [:]

    /// Returns the next event; nil if nothing has changed.
    mutating func update(
        _ changes: InspectorState.Changes, connections open: [Session.OpenConnections], of session: Session.ID,
        by text: InspectorText
    ) -> InspectorUpdate? {
        for task in changes.tasks { running[task.number] = task.end == nil ? task : nil }
        looks += 1
        var tasks = changes.tasks
        if looks % Self.progressLooks == 0 {
            let changed = Set(tasks.map(\.number))
            tasks += running.values.filter { !changed.contains($0.number) && $0.hasProgress }
        }
        let areConnectionsNew = connections != open
        guard isFirst || !tasks.isEmpty || areConnectionsNew || changes.revision != revision else { return nil }
        defer {
            isFirst = false
            revision = changes.revision
            connections = open
        }
        return InspectorUpdate(
            session: session.number, isFirst: isFirst, firstEnd: changes.firstEnd, omitted: changes.omitted,
            totals: InspectorUpdate.Totals(changes.totals), tasks: tasks.map { text.row(of: $0) },
            connections: areConnectionsNew
                ? open.map { .init(origin: $0.origin, active: $0.activeCount, idle: $0.idleCount) } : nil)
    }
}

extension InspectedTask {
    /// Whether bytes of a body move.
    fileprivate var hasProgress: Bool {
        guard let handle else { return false }
        return handle.progressNow.completedBytes > 0 || handle.uploadProgressNow.completedBytes > 0
    }
}

/// One event of a page.
struct InspectorUpdate: Encodable, Sendable {
    struct Totals: Encodable, Sendable {
        let started: UInt64
        let ended: UInt64
        let failed: UInt64
        let received: Int64
        let sent: Int64
        let unseen: UInt64

        init(_ totals: InspectorState.Totals) {
            started = totals.started
            ended = totals.ended
            failed = totals.failed
            received = totals.receivedBytes
            sent = totals.sentBytes
            unseen = totals.unseen
        }
    }

    struct Connections: Encodable, Sendable {
        let origin: String
        let active: Int
        let idle: Int
    }

    let session: UInt64
    /// Whether the viewer must forget what it has.
    let isFirst: Bool
    let firstEnd: UInt64
    let omitted: Int
    let totals: Totals
    let tasks: [InspectorRow]
    let connections: [Connections]?
}

/// A task in the list.
struct InspectorRow: Encodable, Sendable {
    /// The times of a request by phase, in milliseconds; nil for a phase that did not happen or is not known.
    struct Phases: Encodable, Sendable {
        var lookup: Double?
        var connect: Double?
        var tls: Double?
        var wait: Double?
        var receive: Double?
    }

    /// A request on the wire. Times are milliseconds from the start of the task.
    struct Attempt: Encodable, Sendable {
        let cause: String
        let start: Double
        let duration: Double?
        let status: Int?
        let error: String?
    }

    let number: UInt64
    let end: UInt64
    let session: UInt64
    let task: UInt64
    let label: String?
    let state: String
    let method: String
    let url: String
    let status: Int?
    let error: String?
    /// Milliseconds since 1970.
    let start: Double
    let duration: Double?
    let phases: Phases
    let attempts: [Attempt]
    let sent: Int64
    let received: Int64
    let total: Int64?
    let version: String?
    let connection: UInt64?
    let isReused: Bool
    let cache: String?
}

/// A task with its messages.
struct InspectorDetails: Encodable, Sendable {
    struct Attempt: Encodable, Sendable {
        let cause: String
        let method: String
        let url: String
        let start: Double
        let duration: Double?
        let status: Int?
        let reasonPhrase: String?
        let error: String?
        let requestHeaders: [[String]]
        let responseHeaders: [[String]]
    }

    struct Facts: Encodable, Sendable {
        var name: String
        var value: String
    }

    let row: InspectorRow
    let error: String?
    let omittedAttempts: Int
    let attempts: [Attempt]
    let facts: [Facts]
}

/// A stored response in the list of a cache.
struct InspectorStored: Encodable, Sendable {
    let method: String
    let url: String
    let status: Int
    let bytes: Int64
    let isWhole: Bool
    let age: Int64
    let timeToLive: Int64
}
