// The declarations of CryptoKit that TernTransfers uses.
public import Foundation

public protocol Digest: Sequence, Sendable where Element == UInt8 {}

public protocol HashFunction {
    associatedtype Digest: CryptoKit.Digest
    init()
    mutating func update<D: DataProtocol>(data: D)
    func finalize() -> Digest
}

public struct StubDigest: Digest {
    public func makeIterator() -> IndexingIterator<[UInt8]> { [].makeIterator() }
}

public struct SHA256: HashFunction {
    public init() {}
    public mutating func update<D: DataProtocol>(data: D) {}
    public func finalize() -> StubDigest { StubDigest() }
}

public struct SHA512: HashFunction {
    public init() {}
    public mutating func update<D: DataProtocol>(data: D) {}
    public func finalize() -> StubDigest { StubDigest() }
}

public enum Insecure {
    public struct MD5: HashFunction {
        public init() {}
        public mutating func update<D: DataProtocol>(data: D) {}
        public func finalize() -> StubDigest { StubDigest() }
    }

    public struct SHA1: HashFunction {
        public init() {}
        public mutating func update<D: DataProtocol>(data: D) {}
        public func finalize() -> StubDigest { StubDigest() }
    }
}
