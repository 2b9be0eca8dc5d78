import Testing

@testable import TernCache

struct DiskSchemaTests {
    @Test func aDatabaseCannotCallFunctionsByItsSchema() throws {
        let database = try SQLiteDatabase(":memory:")
        #expect(try database.number("PRAGMA trusted_schema") == 0)
        try database.execute("CREATE VIEW forged AS SELECT load_extension('/tmp/forged')")
        #expect {
            _ = try database.number("SELECT count(*) FROM forged WHERE 1 = (SELECT * FROM forged)")
        } throws: { error in
            // Without the setting, the failure is that of the extension, which is tried.
            (error as? DiskCacheError)?.reason.contains("SQL logic error") == true
        }
    }

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
