import HTTPTypes
import Tern
import TernHTTPTypes
import TernSharedCache

/// Uses two packages of `Integrations`, and sends nothing.
@main
enum Integrations {
    static func main() throws {
        let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example.com", path: "/books")
        let store = RedisStore(RedisStore.Configuration(.host("127.0.0.1")))
        print("linked:", try Request(request).urlString, type(of: store))
    }
}
