import TernTesting
import Testing

@testable import Tern

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("UploadPipe", .timeLimit(.minutes(1)))
struct UploadPipeTests {
    /// Returns the outcome of a read of up to `count` bytes as text that is easy to compare, and wakes the producer.
    private func read(_ pipe: UploadPipe, _ count: Int = 64) -> String {
        var buffer = [UInt8](repeating: 0, count: count)
        let (read, wake) = unsafe buffer.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
        unsafe wake?.resume()
        return switch read {
        case .bytes(let count): String(decoding: buffer[..<count], as: UTF8.self)
        case .wait: "(wait)"
        case .end: "(end)"
        case .failed(let failure): "(\(failure.kind))"
        }
    }

    @Test func bytesKeepTheirOrderInEverySplit() async {
        for size in 1...12 {
            let pipe = UploadPipe()
            for piece in ["ab", "c", "defg", "hij"] { _ = await pipe.push(Data(piece.utf8)) }
            #expect(!pipe.end())
            var text = ""
            var next = read(pipe, size)
            while next != "(end)" {
                #expect(next.utf8.count <= size)
                text += next
                next = read(pipe, size)
            }
            #expect(text == "abcdefghij")
            #expect(read(pipe) == "(end)")
        }
    }

    @Test func aSliceIsReadFromItsOwnStart() async {
        let pipe = UploadPipe()
        _ = await pipe.push(Data("0123456789".utf8).dropFirst(4).dropLast(2))
        #expect(read(pipe, 3) == "456")
        #expect(read(pipe, 3) == "7")
    }

    @Test func pipeIsDrainedWhenTheTransportAsksForMore() async {
        let pipe = UploadPipe()
        #expect(pipe.isDrained)
        _ = pipe.offer(Data("a".utf8))
        #expect(read(pipe) == "a")
        #expect(!pipe.isDrained, "the system may not have taken the byte")
        async let drained = pipe.drained()
        while true {
            let next = read(pipe)
            if next == "(wait)" { break }
        }
        #expect(await drained)
        // A closed pipe keeps its state, but for bytes that come later.
        _ = await pipe.push(Data("b".utf8))
        _ = read(pipe)
        _ = pipe.end()
        #expect(!pipe.isDrained)
        #expect(read(pipe) == "(end)")
        pipe.close()
        #expect(pipe.isDrained)
        #expect(await pipe.drained())
        _ = await pipe.push(Data("c".utf8))
        #expect(!pipe.isDrained)
    }

    @Test func largePiecesAreTakenInTheirOrder() async {
        let pipe = UploadPipe()
        let large = Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0) })
        for piece in [Data("a".utf8), large, Data("b".utf8), Data("c".utf8), large.dropFirst(7)] {
            _ = await pipe.push(piece)
        }
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        func next() -> Data {
            let (piece, wake) = unsafe pipe.takeLarge()
            unsafe wake?.resume()
            if let piece { return Data(piece) }
            let (read, other) = unsafe buffer.withUnsafeMutableBytes { unsafe pipe.read(into: $0, leavesLarge: true) }
            unsafe other?.resume()
            guard case .bytes(let count) = read else { return Data() }
            return Data(buffer[..<count])
        }
        #expect(next() == Data("a".utf8))
        #expect(next() == large)
        #expect(!pipe.isEmpty && !pipe.isDrained)
        #expect(next() == Data("bc".utf8))
        #expect(next() == Data(large.dropFirst(7)))
        #expect(pipe.isEmpty && !pipe.isDrained)
        #expect(next().isEmpty && pipe.isDrained)
        // The rest of a piece that was begun.
        _ = await pipe.push(large)
        #expect(read(pipe, 1_000).utf8.count > 0)
        #expect(next() == Data(large.dropFirst(1_000)))
    }

    @Test func closingThePipeEndsTheWaitForItsDrain() async {
        let pipe = UploadPipe()
        _ = pipe.offer(Data("a".utf8))
        async let drained = pipe.drained()
        pipe.close()
        #expect(await drained == false)
        #expect(!pipe.isDrained)
    }

    /// Bytes that are offered between the drain and the end of the wait for it, such as a Pong, are waited for, too.
    @Test func bytesThatAreOfferedAtTheDrainAreAwaited() async {
        for _ in 0..<1_000 {
            let pipe = UploadPipe()
            _ = pipe.offer(Data("a".utf8))
            async let drained = pipe.drained()
            for _ in 0..<10 { await Task.yield() }
            #expect(read(pipe) == "a")
            var buffer = [UInt8](repeating: 0, count: 8)
            let (_, wake) = unsafe buffer.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
            guard let wake = unsafe wake else {
                // The producer did not wait yet.
                _ = await drained
                continue
            }
            _ = pipe.offer(Data("pong".utf8))
            unsafe wake.resume()
            for _ in 0..<10 { await Task.yield() }
            #expect(read(pipe) == "pong")
            #expect(read(pipe) == "(wait)")
            #expect(await drained)
            return
        }
        Issue.record("the producer never waited")
    }

    @Test func onlyAWaitingTransportIsNotified() async {
        let pipe = UploadPipe()
        #expect(await pipe.push(Data("a".utf8)) == (true, false))
        #expect(read(pipe) == "a")
        #expect(read(pipe) == "(wait)")
        #expect(await pipe.push(Data("b".utf8)) == (true, true))
        #expect(await pipe.push(Data("c".utf8)) == (true, false))
        #expect(read(pipe) == "bc")
        #expect(read(pipe) == "(wait)")
        #expect(pipe.end())
        #expect(!pipe.end())
        #expect(read(pipe) == "(end)")
    }

    @Test func failureIsReportedBeforeRemainingBytes() async {
        let pipe = UploadPipe()
        _ = await pipe.push(Data("never sent".utf8))
        #expect(!pipe.end(.failure(FailureCause(.requestBody, "the source broke"))))
        #expect(read(pipe) == "(request-body)")
        #expect(read(pipe) == "(request-body)")
    }

    @Test func closedPipeRefusesBytes() async {
        let pipe = UploadPipe()
        _ = await pipe.push(Data("a".utf8))
        pipe.close()
        #expect(await pipe.push(Data("b".utf8)) == (false, false))
    }

    @Test func aFullPipeMakesTheProducerWait() async {
        let pipe = UploadPipe()
        let isThrough = LoopbackServer.Gate()
        let big = Data(count: 4 << 20)
        _ = await pipe.push(big)
        let producer = Task {
            let push = await pipe.push(Data("z".utf8))
            isThrough.open()
            return push.accepted
        }
        for _ in 0..<100 { await Task.yield() }
        #expect(!isThrough.isOpen)
        var left = big.count
        while left > 0 {
            if left > 2 << 20 { #expect(!isThrough.isOpen) }
            left -= read(pipe, 64 << 10).utf8.count
        }
        #expect(await producer.value)
        #expect(read(pipe) == "z")
    }

    @Test func closingReleasesAProducerThatWaits() async {
        for _ in 0..<200 {
            let pipe = UploadPipe()
            _ = await pipe.push(Data(count: 2 << 20))
            let producer = Task { await pipe.push(Data("z".utf8)).accepted }
            await Task.yield()
            pipe.close()
            #expect(await producer.value == false)
        }
    }

    @Test func aFastReaderAndASlowProducerLoseNothing() async {
        let pipe = UploadPipe()
        let total = 3_000
        let producer = Task {
            for number in 0..<total {
                _ = await pipe.push(Data([UInt8(number % 251)]))
                if number % 7 == 0 { await Task.yield() }
            }
            _ = pipe.end()
        }
        var bytes: [UInt8] = []
        var isAtEnd = false
        while !isAtEnd {
            var buffer = [UInt8](repeating: 0, count: 50)
            let (read, wake) = unsafe buffer.withUnsafeMutableBytes { unsafe pipe.read(into: $0) }
            unsafe wake?.resume()
            switch read {
            case .bytes(let count): bytes += buffer[..<count]
            case .wait: await Task.yield()
            case .end: isAtEnd = true
            case .failed(let failure):
                Issue.record("failed: \(failure)")
                isAtEnd = true
            }
        }
        await producer.value
        #expect(bytes == (0..<total).map { UInt8($0 % 251) })
    }
}
