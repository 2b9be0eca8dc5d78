import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

enum AHCJobs {
    // MARK: 1
    static func get() async throws -> Book {
        let request = HTTPClientRequest(url: "\(base)/books/1")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        guard response.status == .ok else { throw Refused(status: Int(response.status.code)) }
        let body = try await response.body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(Book.self, from: Data(body.readableBytesView))
    }

    // MARK: 2
    static func post(_ book: Book) async throws -> Book {
        var request = HTTPClientRequest(url: "\(base)/books")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(book)))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        guard (200..<300).contains(response.status.code) else { throw Refused(status: Int(response.status.code)) }
        let body = try await response.body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(Book.self, from: Data(body.readableBytesView))
    }

    // MARK: 3
    static func explain() async throws -> String {
        let request = HTTPClientRequest(url: "\(base)/books/1")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        let body = Data(try await response.body.collect(upTo: 1 << 20).readableBytesView)
        if response.status == .ok { return try JSONDecoder().decode(Book.self, from: body).title }
        return try JSONDecoder().decode(Problem.self, from: body).title
    }

    // MARK: 4
    static func download(to file: URL, show: @escaping @Sendable (Double) -> Void) async throws {
        let request = try HTTPClient.Request(url: "\(base)/film")
        let delegate = try FileDownloadDelegate(
            path: file.path,
            reportHead: { task, head in
                if head.status != .ok { task.fail(reason: Refused(status: Int(head.status.code))) }
            },
            reportProgress: { _, progress in
                guard let total = progress.totalBytes, total > 0 else { return }
                show(Double(progress.receivedBytes) / Double(total))
            })
        _ = try await HTTPClient.shared.execute(request: request, delegate: delegate).get()
    }

    // MARK: 5
    static func upload(_ photo: URL) async throws {
        let boundary = UUID().uuidString
        var form = Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"album\"\r\n\r\nsummer\r\n".utf8)
        form += Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"photo\"; ".utf8)
        form += Data("filename=\"photo.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
        form += try Data(contentsOf: photo)
        form += Data("\r\n--\(boundary)--\r\n".utf8)
        var request = HTTPClientRequest(url: "\(base)/photos")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "multipart/form-data; boundary=\(boundary)")
        request.body = .bytes(ByteBuffer(bytes: form))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        guard (200..<300).contains(response.status.code) else { throw Refused(status: Int(response.status.code)) }
    }

    // MARK: 6
    static func persistent(_ request: HTTPClientRequest) async throws -> HTTPClientResponse {
        for attempt in 0..<2 {
            let response = try? await HTTPClient.shared.execute(request, timeout: .seconds(60))
            if let response, ![408, 429, 500, 502, 503, 504].contains(response.status.code) { return response }
            try await Task.sleep(for: .seconds(Double.random(in: 0...0.5) * Double(1 << attempt)))
        }
        return try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    }

    // MARK: 7
    actor Tokens {
        private var token: String?
        private var refresh: Task<String, any Error>?

        func current(replacing old: String?) async throws -> String {
            if let token, token != old { return token }
            if let refresh { return try await refresh.value }
            let task = Task {
                var request = HTTPClientRequest(url: "\(base)/token")
                request.method = .POST
                let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
                guard response.status == .ok else { throw Refused(status: Int(response.status.code)) }
                return String(buffer: try await response.body.collect(upTo: 1 << 20))
            }
            refresh = task
            defer { refresh = nil }
            let fresh = try await task.value
            token = fresh
            return fresh
        }
    }

    static func signedIn(_ request: HTTPClientRequest, _ tokens: Tokens) async throws -> HTTPClientResponse {
        var (request, token) = (request, try await tokens.current(replacing: nil))
        request.headers.replaceOrAdd(name: "Authorization", value: "Bearer \(token)")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        guard response.status == .unauthorized else { return response }
        token = try await tokens.current(replacing: token)
        request.headers.replaceOrAdd(name: "Authorization", value: "Bearer \(token)")
        return try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    }

    // MARK: 8
    static func lines() async throws {
        let request = HTTPClientRequest(url: "\(base)/log")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
        guard response.status == .ok else { throw Refused(status: Int(response.status.code)) }
        var rest = ByteBuffer()
        for try await chunk in response.body {
            rest.writeImmutableBuffer(chunk)
            while let end = rest.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                print(rest.readString(length: end - rest.readerIndex) ?? "")
                rest.moveReaderIndex(forwardBy: 1)
            }
        }
        if rest.readableBytes > 0 { print(String(buffer: rest)) }
    }
}
