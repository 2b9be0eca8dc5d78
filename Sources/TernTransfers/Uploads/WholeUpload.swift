import Tern

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An upload of a file in one request, to any server. After a failure, the whole request is sent again; nothing is ever
/// continued.
public struct WholeUpload: Sendable, Hashable {
    /// The form around a file.
    struct Form: Sendable, Hashable {
        var fileField: String
        /// The other fields, which come before the file.
        var fields: [String: String]
    }

    let endpoint: String
    /// The form; nil for a request whose body is the file.
    let form: Form?

    /// A PUT whose body is the file, such as to a presigned URL of an object store.
    ///
    /// - Parameter url: The path, resolved against the base URL, or an absolute URL.
    public static func put(_ url: String) -> Self { Self(endpoint: url, form: nil) }

    /// A PUT whose body is the file, such as to a presigned URL of an object store.
    ///
    /// - Parameter url: The absolute URL.
    public static func put(_ url: URL) -> Self { put(url.absoluteString) }

    /// A POST of a form (`multipart/form-data`) with the file, such as a browser sends it.
    ///
    /// - Parameters:
    ///   - url: The path, resolved against the base URL, or an absolute URL.
    ///   - fileField: The name of the form's field with the file. `file` by default.
    ///   - formFields: The other fields, which are sent before the file, sorted by name.
    public static func multipart(
        _ url: String, fileField: String = "file", formFields: [String: String] = [:]
    ) -> Self {
        Self(endpoint: url, form: Form(fileField: fileField, fields: formFields))
    }

    /// A POST of a form with the file to an absolute URL, such as a browser sends it.
    ///
    /// - Parameters:
    ///   - url: The absolute URL.
    ///   - fileField: The name of the form's field with the file. `file` by default.
    ///   - formFields: The other fields, which are sent before the file, sorted by name.
    public static func multipart(
        _ url: URL, fileField: String = "file", formFields: [String: String] = [:]
    ) -> Self {
        multipart(url.absoluteString, fileField: fileField, formFields: formFields)
    }
}

extension WholeUpload: CustomStringConvertible, CustomReflectable {
    /// The method and the place, without the values of its query and of the form's fields.
    public var description: String { "\(form == nil ? "PUT" : "POST of a form") to \(Target.redact(endpoint))" }

    /// An empty mirror. Without it, `dump` would show the whole URL and the form's fields.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
