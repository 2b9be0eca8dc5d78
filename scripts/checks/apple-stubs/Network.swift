// The declarations of Network that Tern uses, as Apple documents them (developer.apple.com/documentation/network):
// names, types and labels, without behavior. Only scripts/checks/apple compiles it.
public import Dispatch

public enum NWInterface {
    public enum InterfaceType: Sendable { case other, wifi, cellular, wiredEthernet, loopback }
}

public struct NWPath: Equatable, Sendable {
    public enum Status: Sendable { case satisfied, unsatisfied, requiresConnection }
    public var status: NWPath.Status { .satisfied }
    public var isConstrained: Bool { false }
    public func usesInterfaceType(_ type: NWInterface.InterfaceType) -> Bool { false }
}

/// Said to be Sendable by some SDKs, and not by others: the weaker is the one to be checked against.
public final class NWPathMonitor {
    public init() {}
    @preconcurrency public var pathUpdateHandler: (@Sendable (_ newPath: NWPath) -> Void)? {
        get { nil }
        set { _ = newValue }
    }
    public func start(queue: DispatchQueue) {}
    public func cancel() {}
}
