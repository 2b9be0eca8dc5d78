#if os(Linux)
import Testing

@testable import TernImages

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite struct IncrementalDamageTests {
    /// A generator of numbers that are the same in every run.
    private struct Numbers {
        var state: UInt64
        mutating func next(below limit: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % limit
        }
    }

    /// Decodes 80 mutations of each kind of file, in chunks of varying sizes. Half of them allow partial pictures.
    @Test(arguments: Coming.allCases) func aDamagedFileEndsInAnErrorOrAPicture(kind: Coming) throws {
        let file = try kind.file(#require(InterlacedFixtures.photo(70, 50)))
        var numbers = Numbers(state: 11)
        for round in 0..<80 {
            var bytes = [UInt8](file)
            // The first half of the rounds changes the header and the tables, the second half the picture's data.
            let reach = round < 40 ? min(bytes.count, 700) : bytes.count
            for _ in 0...numbers.next(below: 6) { bytes[numbers.next(below: reach)] = UInt8(numbers.next(below: 256)) }
            let options = ImageDecodingOptions(
                limits: .init(pixels: 1_000_000), allowsPartial: round.isMultiple(of: 2))
            let decoder = IncrementalDecoder(options: options, showsRows: round.isMultiple(of: 3))
            do throws(ImageError) {
                let size = numbers.next(below: 3_000) + 1
                let (previews, final) = try feed(Data(bytes), by: size, to: decoder)
                #expect((previews + [final]).allSatisfy { $0.byteCount == $0.size.pixelCount * 4 })
            } catch {
                #expect(error.kind != .invalidArgument && error.kind != .cancelled)
            }
            // After an error, the result is a partial picture or the same error.
            do throws(ImageError) { _ = try decoder.finish() } catch { #expect(error.kind != .invalidArgument) }
        }
    }

    /// The second header of a file is damage, and not a picture whose size exceeds the limit.
    @Test(arguments: [1, 16, 10_000]) func aSecondHeaderIsDamage(size: Int) throws {
        let picture = try #require(InterlacedFixtures.photo(20, 20))
        let header = chunk("IHDR", [0, 1, 0, 0, 0, 1, 0, 0, 8, 6, 0, 0, 0])
        let file = InterlacedFixtures.png(picture, interlaced: false).dropLast(12) + header
        let options = ImageDecodingOptions(limits: .init(pixels: 10_000), allowsPartial: true)
        let whole = try CodecImageDecoder().image(from: file, options: options)
        let (_, final) = try feed(file, by: size, to: IncrementalDecoder(options: options))
        #expect(final.pixels.bytes == whole.pixels.bytes)
    }

    /// Cuts files at 64 places. The result is an error, or as much of the picture as the decoder of whole files
    /// returns.
    @Test(arguments: Coming.allCases) func aCutFileIsAnErrorUnlessPartialIsAsked(kind: Coming) throws {
        let file = try kind.file(#require(InterlacedFixtures.photo(70, 50)))
        let whole = try CodecImageDecoder().image(from: file, options: ImageDecodingOptions())
        for part in 0..<64 {
            let cut = file.prefix(file.count * part / 64)
            do throws(ImageError) {
                // The last bytes of a file may contain nothing of the picture.
                let (_, final) = try feed(cut, by: 100, to: IncrementalDecoder())
                #expect(final.pixels.bytes == whole.pixels.bytes && part > 16)
            } catch {
                #expect(error.kind == .truncated || error.kind == .unknownFormat)
            }
            let options = ImageDecodingOptions(allowsPartial: true)
            let incremental = IncrementalDecoder(options: options)
            let theirs = try? CodecImageDecoder().image(from: cut, options: options)
            do throws(ImageError) {
                let (_, partial) = try feed(cut, by: 100, to: incremental)
                #expect(partial.pixels.bytes == theirs?.pixels.bytes)
                #expect(partial.metadata == theirs?.metadata)
            } catch {
                #expect(theirs == nil)
            }
        }
    }

    @Test func limitsHoldBeforeMemoryIsTaken() throws {
        let photo = try #require(InterlacedFixtures.photo(64, 50))
        for kind in Coming.allCases {
            let file = try kind.file(photo)
            let pixels = IncrementalDecoder(options: ImageDecodingOptions(limits: .init(pixels: 3_199)))
            let tooLarge = #expect(throws: ImageError.self) { _ = try feed(file, by: 40, to: pixels) }
            #expect(tooLarge?.kind == .limitExceeded)
            let bytes = IncrementalDecoder(options: ImageDecodingOptions(limits: .init(bytes: file.count - 1)))
            let tooLong = #expect(throws: ImageError.self) { _ = try feed(file, by: 40, to: bytes) }
            #expect(tooLong?.kind == .limitExceeded)
        }
        let scans = IncrementalDecoder(options: ImageDecodingOptions(limits: .init(scans: 9)))
        let tooMany = #expect(throws: ImageError.self) {
            _ = try feed(try Coming.progressiveJPEG.file(photo), by: 40, to: scans)
        }
        #expect(tooMany?.kind == .limitExceeded)
    }

    /// The file repeats one scan many times. Each repetition costs a pass and adds nothing.
    @Test func repeatedScansAreABomb() throws {
        let file = [UInt8](try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(64, 64))))
        let scans = file.indices.dropLast().filter { file[$0] == 0xFF && file[$0 + 1] == 0xDA }
        let tables = try #require(file.indices.first { $0 > scans[0] && file[$0] == 0xFF && file[$0 + 1] == 0xC4 })
        let again = Array(file[scans[0]..<tables])
        let bomb = Data(file[..<tables] + Array(repeating: again, count: 25).joined() + file[tables...])
        let decoder = IncrementalDecoder()
        let thrown = #expect(throws: ImageError.self) { _ = try feed(bomb, by: 500, to: decoder) }
        #expect(thrown?.kind == .limitExceeded)
        #expect(decoder.completedPasses <= 4)
    }

    @Test func bytesThatAreNoPictureAreTold() {
        let decoder = IncrementalDecoder()
        let thrown = #expect(throws: ImageError.self) { try decoder.append(Data(repeating: 1, count: 20)) }
        #expect(thrown?.kind == .unknownFormat)
        let none = #expect(throws: ImageError.self) { _ = try IncrementalDecoder().finish() }
        #expect(none?.kind == .unknownFormat)
        let bitmap = Data("BM1234567890123456".utf8)
        let other = #expect(throws: ImageError.self) { try IncrementalDecoder().append(bitmap) }
        #expect(other?.kind == .unsupported)
    }

    @Test func cancellationStopsBetweenTwoSteps() async throws {
        let file = try Coming.progressiveJPEG.file(#require(InterlacedFixtures.photo(64, 64)))
        let task = Task {
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return #expect(throws: ImageError.self) { try IncrementalDecoder().append(file) }
        }
        #expect(await task.value?.kind == .cancelled)
    }
}
#endif
