import Foundation
import Tern

/// The token of a download, as an attacker can change it.
extension FuzzTarget {
    static let resumeData = [
        FuzzTarget(
            name: "resume-data", seeds: { _ in try tokens() },
            run: { input, choice in
                checkToken(input, isList: choice & 1 == 1 || input.starts(with: Data("bplist".utf8)))
            })
    ]

    private static func tokens() throws -> [[UInt8]] {
        let texts = ["\"etag\"", "Wed, 21 Oct 2015 07:28:00 GMT"]
        let list = PropertyListEncoder()
        return try texts.flatMap { validator -> [[UInt8]] in
            let folder = "/home/ada/Downloads"
            let name = TemporaryName(for: validator.hasPrefix("\"") ? "big.iso" : nil, isPartial: true).text
            let token = ResumeData(
                url: "https://a.example/b?c=d", validator: validator, offset: 500, partialFile: "\(folder)/\(name)",
                totalBytes: validator.hasPrefix("\"") ? 1_000 : nil)
            list.outputFormat = .binary
            let binary = try list.encode(token)
            list.outputFormat = .xml
            return [[UInt8](try JSONEncoder().encode(token)), [UInt8](binary), [UInt8](try list.encode(token))]
        }
    }

    /// Checks that a token that decodes adds no field to a request, and names no file outside the folder of its
    /// look-up.
    @Sendable private static func checkToken(_ input: Data, isList: Bool) -> String {
        let decoded: ResumeData
        do {
            decoded =
                isList
                // Foundation's decoder of XML ends the process at bytes that are not UTF-8.
                ? try PropertyListDecoder().decode(ResumeData.self, from: PropertyListCheck.checked(input))
                : try JSONDecoder().decode(ResumeData.self, from: input)
        } catch {
            guard case DecodingError.dataCorrupted(let context)? = error as? DecodingError else { return "rejected" }
            return "rejected, \(context.codingPath.last?.stringValue ?? "whole")"
        }
        let folder = "/allowed"
        let path = FilePath.join(folder, decoded.partialFile)
        precondition(FilePath.folder(of: path) == folder && FilePath.name(of: path) == decoded.partialFile)
        precondition(decoded.partialFile != "." && decoded.partialFile != ".." && !decoded.partialFile.utf8.contains(0))
        precondition(decoded.partialFile.hasSuffix(".tern-part") && decoded.partialFile.utf8.count <= 255)
        for field in decoded.resumeRules.fields {
            precondition(field.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } && field.value.utf8.count < 2_000)
        }
        precondition(decoded.offset >= 0 && decoded.totalBytes ?? .max >= decoded.offset)
        let end = decoded.totalBytes ?? 1_000
        let headers: Headers = [
            "Content-Range": "bytes \(decoded.offset)-\(end &- 1)/\(end)", "ETag": decoded.validator,
            "Last-Modified": decoded.validator,
        ]
        let decision = decoded.resumeRules.decision(on: 206, headers: headers, isSameOrigin: false)
        if case .append(let end, let total) = decision { precondition(end > decoded.offset && end <= total) }
        guard let again = try? JSONDecoder().decode(ResumeData.self, from: JSONEncoder().encode(decoded)) else {
            preconditionFailure("what was encoded is not decoded")
        }
        precondition(again == decoded && !decoded.description.isEmpty)
        return "token \(decision == .askForWhole) \(decoded.totalBytes == nil)"
    }
}
