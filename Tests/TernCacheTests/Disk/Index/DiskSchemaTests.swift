import Testing

@testable import TernCache

struct DiskSchemaTests {
    @Test func theVersionsDecideTheAction() {
        let ours = DiskSchema.application
        #expect(DiskSchema.action(application: 0, version: 0, recordedVersion: nil, isEmpty: true) == .migrate(from: 0))
        #expect(DiskSchema.action(application: 0, version: 0, recordedVersion: nil, isEmpty: false) == .setAside)
        #expect(DiskSchema.action(application: 5, version: 1, recordedVersion: nil, isEmpty: false) == .setAside)
        #expect(
            DiskSchema.action(application: ours, version: 1, recordedVersion: nil, isEmpty: false) == .migrate(from: 1))
        #expect(DiskSchema.action(application: ours, version: 2, recordedVersion: nil, isEmpty: false) == .use)
        #expect(DiskSchema.action(application: ours, version: 2, recordedVersion: 2, isEmpty: false) == .use)
        #expect(
            DiskSchema.action(application: ours, version: 3, recordedVersion: 3, isEmpty: false) == .refuse(version: 3))
        // Damaged in one place or the other.
        for noted in [nil, 2, 4] {
            #expect(
                DiskSchema.action(application: ours, version: 3, recordedVersion: noted, isEmpty: false) == .setAside)
        }
        #expect(DiskSchema.action(application: ours, version: 1, recordedVersion: 2, isEmpty: false) == .setAside)
    }
}
