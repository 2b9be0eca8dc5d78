import GRPCCore

/// The writer of a call's request.
struct RequestWriter: ClosableRPCWriterProtocol {
    typealias Element = RPCRequestPart<TernGRPCTransport.Bytes>

    let call: Call

    /// Writes the metadata, first, or a message. Waits while the connection has not taken most of the messages before.
    func write(_ element: Element) async throws {
        switch element {
        case .metadata(let metadata): try call.write(metadata)
        case .message(let bytes): try await call.write(bytes.data)
        }
    }

    func write(contentsOf elements: some Sequence<Element>) async throws {
        for element in elements { try await write(element) }
    }

    func finish() async { call.finish() }

    func finish(throwing error: any Error) async { call.finish(throwing: error) }
}
