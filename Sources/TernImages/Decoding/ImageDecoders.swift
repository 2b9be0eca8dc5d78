import TernConcurrency

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The decoders of a pipeline, by format: the system's, and before them those that were registered, the last one first.
public final class ImageDecoders: Sendable {
    /// A decoder that was registered, to be removed by it.
    public struct Registration: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    /// Those of every pipeline that is given no others.
    public static let shared = ImageDecoders()

    private let registered = Lock<[(Registration, any ImageDecoder)]>([])
    private let numbers = SerialNumbers()
    private let system: [any ImageDecoder]
    private let isSystem: Bool

    /// The system's decoders.
    public convenience init() {
        #if os(Linux)
        self.init([CodecImageDecoder()])
        #else
        self.init([ImageIODecoder()])
        #endif
    }

    /// These decoders alone, the first that takes a file decodes it.
    public init(_ decoders: [any ImageDecoder]) {
        system = decoders
        #if os(Linux)
        isSystem = decoders.count == 1 && decoders[0] is CodecImageDecoder
        #else
        isSystem = false
        #endif
    }

    /// Adds a decoder, which goes before all others.
    @discardableResult
    public func register(_ decoder: any ImageDecoder) -> Registration {
        let registration = Registration(number: numbers.next())
        registered.withLock { $0.insert((registration, decoder), at: 0) }
        return registration
    }

    /// Takes a registered decoder out; pictures that it is decoding come to their end.
    public func remove(_ registration: Registration) {
        registered.withLock { $0.removeAll { $0.0 == registration } }
    }

    /// Whether nobody but the system's decoders takes anything.
    var areSystem: Bool { isSystem && registered.withLock { $0.isEmpty } }

    /// Who decodes these bytes, and as what.
    ///
    /// Throws the kind `.unknownFormat` if no decoder knows them, `.unsupported` if the format is known and nobody takes it.
    func decoder(for data: Data) throws(ImageError) -> any ImageDecoder {
        if data.isEmpty { throw ImageError(.truncated, "there are no bytes") }
        for decoder in registered.withLock({ $0.map(\.1) }) + system {
            if let format = decoder.format(of: data), decoder.decodes(format) { return decoder }
        }
        guard let format = ImageFormat(sniffing: data) else {
            throw ImageError(.unknownFormat, "the first of \(data.count) bytes are of no known format")
        }
        throw ImageError(.unsupported, format: format, "no decoder for it here")
    }
}
