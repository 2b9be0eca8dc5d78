/// Constants of the package Tern.
public enum TernPackage {
    // `scripts/release` changes this line. Nothing else has the version.

    /// The version of Tern: three numbers by Semantic Versioning, as in `User-Agent`. Between two releases it is that of
    /// the last one.
    public static let version = "0.1.0"
}
