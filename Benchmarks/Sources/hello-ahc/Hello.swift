import AsyncHTTPClient
import NIOCore

/// The smallest program: one GET, whose body is printed.
@main
struct Hello {
    static func main() async throws {
        let request = HTTPClientRequest(url: CommandLine.arguments[1])
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
        print(String(buffer: try await response.body.collect(upTo: 1 << 20)))
    }
}
