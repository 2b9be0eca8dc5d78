import Foundation
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

enum URLSessionJobs {
    // MARK: 1
    static func get() async throws -> Book {
        guard let url = URL(string: "\(base)/books/1") else { throw URLError(.badURL) }
        let (data, response) = try await URLSession.shared.data(from: url)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard status == 200 else { throw Refused(status: status) }
        return try JSONDecoder().decode(Book.self, from: data)
    }

    // MARK: 2
    static func post(_ book: Book) async throws -> Book {
        guard let url = URL(string: "\(base)/books") else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let body = try JSONEncoder().encode(book)
        let (data, response) = try await URLSession.shared.upload(for: request, from: body)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw Refused(status: status) }
        return try JSONDecoder().decode(Book.self, from: data)
    }

    // MARK: 3
    static func explain() async throws -> String {
        guard let url = URL(string: "\(base)/books/1") else { throw URLError(.badURL) }
        let (data, response) = try await URLSession.shared.data(from: url)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        if status == 200 { return try JSONDecoder().decode(Book.self, from: data).title }
        return try JSONDecoder().decode(Problem.self, from: data).title
    }

    // MARK: 4
    final class Downloader: NSObject, URLSessionDownloadDelegate, Sendable {
        private let file: URL
        private let show: @Sendable (Double) -> Void
        private let waiter = Mutex<CheckedContinuation<Void, any Error>?>(nil)
        private let failure = Mutex<(any Error)?>(nil)

        init(to file: URL, show: @escaping @Sendable (Double) -> Void) { (self.file, self.show) = (file, show) }

        func download(_ url: URL) async throws {
            let session = URLSession(configuration: .default, delegate: self, delegateQueue: nil)
            defer { session.finishTasksAndInvalidate() }
            try await withCheckedThrowingContinuation { continuation in
                waiter.withLock { $0 = continuation }
                session.downloadTask(with: url).resume()
            }
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
            totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
        ) {
            guard totalBytesExpectedToWrite > 0 else { return }
            show(Double(totalBytesWritten) / Double(totalBytesExpectedToWrite))
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {
            do {
                let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 0
                guard status == 200 else { throw Refused(status: status) }
                try FileManager.default.moveItem(at: location, to: file)
            } catch {
                failure.withLock { $0 = error }
            }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let outcome = error ?? failure.withLock { $0 }
            let continuation = waiter.withLock { $0.take() }
            if let outcome { continuation?.resume(throwing: outcome) } else { continuation?.resume() }
        }
    }

    // MARK: 5
    static func upload(_ photo: URL) async throws {
        guard let url = URL(string: "\(base)/photos") else { throw URLError(.badURL) }
        let boundary = UUID().uuidString
        var form = Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"album\"\r\n\r\nsummer\r\n".utf8)
        form += Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"photo\"; ".utf8)
        form += Data("filename=\"photo.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
        form += try Data(contentsOf: photo)
        form += Data("\r\n--\(boundary)--\r\n".utf8)
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("multipart/form-data; boundary=\(boundary)", forHTTPHeaderField: "Content-Type")
        let (_, response) = try await URLSession.shared.upload(for: request, from: form)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard (200..<300).contains(status) else { throw Refused(status: status) }
    }

    // MARK: 6
    static func persistent(_ request: URLRequest) async throws -> (Data, URLResponse) {
        for attempt in 0..<2 {
            if let answer = try? await URLSession.shared.data(for: request) {
                let status = (answer.1 as? HTTPURLResponse)?.statusCode ?? 0
                if ![408, 429, 500, 502, 503, 504].contains(status) { return answer }
            }
            try await Task.sleep(for: .seconds(Double.random(in: 0...0.5) * Double(1 << attempt)))
        }
        return try await URLSession.shared.data(for: request)
    }

    // MARK: 7
    actor Tokens {
        private var token: String?
        private var refresh: Task<String, any Error>?

        func current(replacing old: String?) async throws -> String {
            if let token, token != old { return token }
            if let refresh { return try await refresh.value }
            let task = Task {
                guard let url = URL(string: "\(base)/token") else { throw URLError(.badURL) }
                var request = URLRequest(url: url)
                request.httpMethod = "POST"
                let (data, response) = try await URLSession.shared.data(for: request)
                let status = (response as? HTTPURLResponse)?.statusCode ?? 0
                guard status == 200 else { throw Refused(status: status) }
                return String(decoding: data, as: UTF8.self)
            }
            refresh = task
            defer { refresh = nil }
            let fresh = try await task.value
            token = fresh
            return fresh
        }
    }

    static func signedIn(_ request: URLRequest, _ tokens: Tokens) async throws -> (Data, URLResponse) {
        var (request, token) = (request, try await tokens.current(replacing: nil))
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        let answer = try await URLSession.shared.data(for: request)
        guard (answer.1 as? HTTPURLResponse)?.statusCode == 401 else { return answer }
        token = try await tokens.current(replacing: token)
        request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        return try await URLSession.shared.data(for: request)
    }

    // MARK: 8
    #if !canImport(FoundationNetworking)
    static func lines() async throws {
        guard let url = URL(string: "\(base)/log") else { throw URLError(.badURL) }
        let (bytes, response) = try await URLSession.shared.bytes(from: url)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard status == 200 else { throw Refused(status: status) }
        for try await line in bytes.lines { print(line) }
    }
    #endif

    // MARK: 9
    static func caching() -> URLSession {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(memoryCapacity: 32 << 20, diskCapacity: 0, diskPath: nil)
        return URLSession(configuration: configuration)
    }
}
