import Testing

@testable import TernCache

struct DiskBudgetTests {
    private var budget: DiskBudget {
        var configuration = DiskCache.Configuration()
        configuration.byteLimit = 16 << 20
        configuration.countLimit = 100
        configuration.minimumFreeBytes = 10 << 20
        return DiskBudget(configuration)
    }

    @Test func theUsageDeterminesTheNextAction() {
        typealias Usage = DiskBudget.Usage
        let request = DiskBudget.SpaceRequest(fileBytes: 1 << 20, count: 1)
        #expect(budget.logLimit == 2 << 20)
        #expect(budget.action(Usage(files: 12 << 20, count: 5), request) == .fits)
        #expect(budget.action(Usage(files: 13 << 20, count: 5), request) == .fits)
        #expect(budget.action(Usage(files: 14 << 20, count: 5), request) == .evict(bytes: 1 << 20, count: 0))
        #expect(budget.action(Usage(files: 14 << 20, setAside: 1, count: 5), request) == .dropSetAside)
        #expect(budget.action(Usage(files: 14 << 20, trash: 1, count: 5), request) == .emptyTrash)
        #expect(budget.action(Usage(databasePages: 896, freePages: 800, count: 5), request) == .shrink)
        #expect(budget.action(Usage(databasePages: 896, freePages: 3, count: 0), request) == .shrink)
        #expect(
            budget.action(Usage(databasePages: 896, minimumPages: 896, count: 0), request) == .refuse(isDiskFull: false)
        )
        #expect(budget.action(Usage(count: 100), request) == .evict(bytes: 0, count: 1))
        #expect(budget.action(Usage(count: 5, diskFree: 11 << 20), request) == .fits)
        #expect(budget.action(Usage(count: 5, diskFree: 10 << 20), request) == .evict(bytes: 1 << 20, count: 0))
        #expect(budget.action(Usage(count: 0, diskFree: 10 << 20), request) == .refuse(isDiskFull: true))
    }

    @Test func aRequestThatExceedsAnEmptyCacheIsRefusedBeforeAnythingIsRemoved() {
        typealias Usage = DiskBudget.Usage
        let full = Usage(files: 13 << 20, databasePages: 20, freePages: 9, setAside: 1, trash: 1, count: 50)
        let room = (14 << 20) - DiskSchema.emptyPages * DiskSchema.pageSize
        // Exactly what an empty cache can store is accepted, and one byte more is refused.
        #expect(budget.action(full, DiskBudget.SpaceRequest(fileBytes: room, count: 1)) == .dropSetAside)
        #expect(
            budget.action(full, DiskBudget.SpaceRequest(fileBytes: room + 1, count: 1)) == .refuse(isDiskFull: false))
        #expect(budget.action(Usage(), DiskBudget.SpaceRequest(fileBytes: room, count: 1)) == .fits)
        let rows = (room - 4 * DiskSchema.pageSize) / 2
        #expect(budget.action(full, DiskBudget.SpaceRequest(rowBytes: rows, count: 1)) == .dropSetAside)
        #expect(
            budget.action(full, DiskBudget.SpaceRequest(rowBytes: rows + 1, count: 1)) == .refuse(isDiskFull: false))
        #expect(
            budget.action(full, DiskBudget.SpaceRequest(fileBytes: 1, logBytes: room)) == .refuse(isDiskFull: false))
        // Files that are being written cannot be evicted.
        let writing = Usage(files: 6 << 20, unfinished: 7 << 20, count: 50)
        #expect(budget.action(writing, DiskBudget.SpaceRequest(fileBytes: 6 << 20)) == .evict(bytes: 5 << 20, count: 0))
        #expect(budget.action(writing, DiskBudget.SpaceRequest(fileBytes: 7 << 20)) == .refuse(isDiskFull: false))
        // An index that cannot shrink keeps its pages.
        let fixed = Usage(databasePages: 448, minimumPages: 448, count: 50)
        #expect(budget.action(fixed, DiskBudget.SpaceRequest(fileBytes: (7 << 20) + 1)) == .refuse(isDiskFull: false))
        // More entries than the limit of entries, also if most of them replace others.
        #expect(budget.action(Usage(count: 100), DiskBudget.SpaceRequest(count: 101)) == .refuse(isDiskFull: false))
        #expect(
            budget.action(Usage(count: 100), DiskBudget.SpaceRequest(count: 1, stored: 101))
                == .refuse(isDiskFull: false))
        #expect(
            budget.action(Usage(count: 100), DiskBudget.SpaceRequest(count: 1, stored: 100))
                == .evict(bytes: 0, count: 1))
    }
}
