import Tern
import Testing

@Suite("TemporaryName")
struct TemporaryNameTests {
    @Test(arguments: [nil, "file", "a.tar.gz", ".hidden", "漢字", "a\nb", ""] as [String?], [true, false])
    func aNewNameIsReadBack(destination: String?, isPartial: Bool) {
        let name = TemporaryName(for: destination, isPartial: isPartial)
        #expect(TemporaryName(name.text) == name)
        #expect(name.isPartial == isPartial)
        #expect(name.isOrphan(of: destination) == !isPartial)
        #expect(!name.isOrphan(of: destination == nil ? "other" : nil) && !name.isOrphan(of: "another"))
        #expect(TemporaryName(for: destination, isPartial: isPartial) != name)
    }

    @Test(arguments: ["x", "é", "漢", "👨‍👩‍👧", "a\u{301}\u{302}"])
    func longNamesAreCutBetweenCharacters(character: String) throws {
        let destination = String(repeating: character, count: 300)
        let name = TemporaryName(for: destination, isPartial: true)
        #expect(name.text.utf8.count <= 255)
        #expect(destination.hasPrefix(name.text.dropFirst().prefix { $0 != "." }))
        #expect(TemporaryName(name.text) == name)
        #expect(TemporaryName(for: destination).isOrphan(of: destination))
    }

    @Test(arguments: [
        "", ".", "..", "file", ".tern", "tern-.tern", "tern-0123456789abcdef", "tern-0123456789ABCDEF.tern",
        "tern-0123456789abcde.tern", "tern-0123456789abcdeff.tern", "Tern-0123456789abcdef.tern",
        "..0123456789abcdef.tern", ".0123456789abcdef.tern", "a.0123456789abcdef.tern", ".a0123456789abcdef.tern",
        ".a.0123456789abcdef.tern.", ".a.0123456789abcdef.ter", ".a.0123456789abcdef.tern-parts",
        "../.a.0123456789abcdef.tern-part", "/.a.0123456789abcdef.tern-part", ".a/b.0123456789abcdef.tern-part",
        ".a\n.0123456789abcdef.tern-part", ".a\0.0123456789abcdef.tern-part", ".a\u{7F}.0123456789abcdef.tern",
        "./tern-0123456789abcdef.tern", "x/tern-0123456789abcdef.tern", ".a.0123456789abcdeg.tern",
    ])
    func otherNamesAreNotRead(text: String) {
        #expect(TemporaryName(text) == nil)
    }

    @Test func nameLongerThanAFileSystemAllowsIsNotRead() {
        let end = ".0123456789abcdef.tern"
        #expect(TemporaryName("." + String(repeating: "a", count: 254 - end.utf8.count) + end) != nil)
        #expect(TemporaryName("." + String(repeating: "a", count: 255 - end.utf8.count) + end) == nil)
    }

    @Test func crowdedFoldersAreSearchedOnceAMinute() {
        var schedule = SweepSchedule()
        schedule.record("/small", entries: SweepSchedule.largeFolderCount, at: 5)
        schedule.record("/large", entries: SweepSchedule.largeFolderCount + 1, at: 5)
        #expect(schedule.isDue("/small", at: 5) && schedule.isDue("/other", at: 5))
        #expect(!schedule.isDue("/large", at: 5) && !schedule.isDue("/large", at: 4 + SweepSchedule.interval))
        #expect(schedule.isDue("/large", at: 5 + SweepSchedule.interval))
        schedule.record("/large", entries: 3, at: 6)
        #expect(schedule.isDue("/large", at: 6))
    }
}
