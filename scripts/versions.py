"""The version of Tern, and how manifests ask for it, for `release` and `split-integrations`."""

import re

# The one file with the version, and the line in it.
FILE = "Sources/Tern/Configuration/TernPackage.swift"
LINE = re.compile(r'(static let version = ")([^"]+)(")')
# The version of the commits before that file.
FIRST = "0.1.0"
# A version of Semantic Versioning without a pre-release and metadata.
VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
# The line of a manifest that adds Tern, or a package that was split from it: the URL, and what it asks for.
DEPENDENCY = re.compile(r'(\.package\(url: "([^"\n]*/tern(?:-[a-z-]+)?\.git)", )'
                        r'(?:\.upToNextMinor\(from: "[^"\n]*"\)|from: "[^"\n]*")(\))')


def numbers(version):
    """The three numbers of a version, or `None` if it is not one."""
    found = VERSION.fullmatch(version)
    return tuple(int(number) for number in found.groups()) if found else None


def requirement(version):
    """The versions that may stand in for one: before 1.0, a minor version can change public API."""
    return f'.upToNextMinor(from: "{version}")' if version.startswith("0.") else f'from: "{version}"'
