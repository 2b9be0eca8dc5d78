import Foundation
import Tern
import TernCache
import TernImages
import TernSharedCache

/// A server of a fleet: loads the originals of a range of numbers through a pipeline without a disk, whose second level
/// is on a Redis server. It begins with the first byte of its input, and prints how many it has loaded.
///
/// Arguments: the path of the socket, the password, the URL of the image server, the number of originals, and 1 to load
/// them in the reverse order.
@main
enum SharedCacheChild {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 6, let count = Int(arguments[4]) else { exit(2) }
        var server = RedisStore.Configuration(.unixSocket(arguments[1]))
        server.password = arguments[2]
        // The test is about the number of fetches, on a machine that may be busy.
        server.operationTimeout = .seconds(10)
        var level = SecondLevelCache(RedisStore(server))
        level.timeLimit = .seconds(30)
        level.waitLimit = .seconds(60)
        level.reservationTime = .seconds(60)
        var configuration = ImagePipeline.Configuration()
        configuration.session = Session()
        configuration.disk = .none
        configuration.secondLevel = level
        let pipeline = ImagePipeline(configuration: configuration)
        let numbers = arguments[5] == "1" ? Array((0..<count).reversed()) : Array(0..<count)
        FileHandle.standardOutput.write(Data("ready\n".utf8))
        _ = FileHandle.standardInput.readData(ofLength: 1)
        let loaded = await withTaskGroup(of: Bool.self) { group in
            var (next, loaded) = (0, 0)
            func add() {
                guard next < numbers.count else { return }
                let number = numbers[next]
                next += 1
                group.addTask {
                    let request = ImageRequest(URL(string: "\(arguments[3])\(number).png"))
                    // A failure is counted.
                    let data = try? await pipeline.data(for: request)
                    return data?.starts(with: Data("original \(number) ".utf8)) == true
                }
            }
            for _ in 0..<24 { add() }
            for await isLoaded in group {
                if isLoaded { loaded += 1 }
                add()
            }
            return loaded
        }
        // A failure to write to the disk, of which there is none.
        try? await pipeline.flush()
        print(loaded)
    }
}
