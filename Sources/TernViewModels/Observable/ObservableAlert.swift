public import Observation

/// The alerts of tasks that failed, one at a time, to be observed.
///
/// ```swift
/// .alert(alerts.current?.title ?? "", isPresented: $alerts.isPresented) {
/// } message: {
///     Text(alerts.current?.message ?? "")
/// }
/// ```
@MainActor
@Observable
public final class ObservableAlert: AlertViewModel {
    private var waiting: [TaskAlert] = []
    /// The bindings, which end with this object.
    @ObservationIgnored public let bindings = ViewBindings()

    /// No alerts.
    public init() {}

    /// The alert to be presented, the oldest first; nil for none.
    public var current: TaskAlert? { waiting.first }

    /// Whether there is an alert to be presented. Setting it to false dismisses the current one, and the next takes its
    /// place; setting it to true changes nothing.
    public var isPresented: Bool {
        get { !waiting.isEmpty }
        set { if !newValue { dismiss() } }
    }

    /// Takes the current alert away.
    public func dismiss() { if !waiting.isEmpty { waiting.removeFirst() } }

    /// Puts the alert behind those that wait.
    public func showAlert(_ alert: TaskAlert) { waiting.append(alert) }
}
