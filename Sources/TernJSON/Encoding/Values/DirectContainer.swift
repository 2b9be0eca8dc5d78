#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An array or a dictionary, which is written without its `encode(to:)` and the containers that this would need.
protocol DirectContainer {
    /// The type that writes values of this type. To find it takes long, so that it is kept.
    static var writer: any DirectWriter.Type { get }
}

/// Writes values of a type of arrays or dictionaries.
protocol DirectWriter {
    /// Writes the value at an address, which is of the type.
    static func write(_ value: UnsafeRawPointer, to writer: JSONTextWriter) throws
}

extension Array: DirectContainer where Element: Encodable {
    static var writer: any DirectWriter.Type { ArrayWriter<Element, InPlace<Element>>.self }
}

/// Writes arrays.
///
/// The element in place is a parameter of the type, because to look up its metadata for each array would take as long
/// as to write six members.
private enum ArrayWriter<Element: Encodable, Value: ValueInPlace & ~Copyable>: DirectWriter {
    static func write(_ value: UnsafeRawPointer, to writer: JSONTextWriter) throws {
        var place = try writer.openDirect(.array)
        if try unsafe !place.writeKnown(value, of: Element.self) {
            let array = unsafe value.assumingMemoryBound(to: [Element].self).pointee
            let kind = writer.kind(of: Element.self)
            try unsafe array.withUnsafeBytes { bytes in
                guard let first = bytes.baseAddress else { return }
                let values = unsafe first.assumingMemoryBound(to: Value.self)
                try unsafe place.write(values, count: array.count) { try $1.write(to: $0, as: kind) }
            }
        }
        place.closeDirect()
    }
}

extension Dictionary: DirectContainer, DirectWriter where Key: CodingKeyRepresentable, Value: Encodable {
    static var writer: any DirectWriter.Type { Self.self }

    static func write(_ value: UnsafeRawPointer, to writer: JSONTextWriter) throws {
        var place = try writer.openDirect(.object)
        // The common types are known to the compiler here; for others each access to the dictionary is a call.
        if Key.self == String.self {
            if Value.self == String.self {
                try unsafe place.write(value.assumingMemoryBound(to: [String: String].self).pointee) { $0.write($1) }
            } else if Value.self == Int.self {
                try unsafe place.write(value.assumingMemoryBound(to: [String: Int].self).pointee) { $0.write($1) }
            } else if Value.self == Double.self {
                try unsafe place.write(value.assumingMemoryBound(to: [String: Double].self).pointee) {
                    try $0.write($1)
                }
            } else {
                let kind = writer.kind(of: Value.self)
                try unsafe place.write(value.assumingMemoryBound(to: [String: Value].self).pointee) {
                    try $0.write($1, as: kind)
                }
            }
        } else {
            let kind = writer.kind(of: Value.self)
            for (key, element) in unsafe value.assumingMemoryBound(to: [Key: Value].self).pointee {
                // Different keys can have the same name.
                try place.beginMember(key.codingKey.stringValue)
                try place.writer.write(element, as: kind)
            }
        }
        place.closeDirect()
    }
}

extension JSONTextWriter {
    /// Opens an array or an object.
    func openDirect(_ kind: OpenValue.Kind) throws -> ContainerPlace {
        let place = openContainer(kind)
        try checkFailure()
        return place
    }
}

extension ContainerPlace {
    /// The number of elements after which is looked for a failure, such as cancellation.
    private static let checkInterval = 1_024

    /// Writes an array of strings, numbers or dates, whose type the compiler knows here, and returns whether it is one.
    fileprivate mutating func writeKnown<Element>(_ array: UnsafeRawPointer, of type: Element.Type) throws -> Bool {
        if type == String.self {
            try unsafe write(array.assumingMemoryBound(to: [String].self).pointee) { $1.write(to: $0) }
        } else if type == Int.self {
            try unsafe writeIntegers(array, of: Int.self)
        } else if type == Double.self {
            try unsafe write(array.assumingMemoryBound(to: [Double].self).pointee) { try $1.write(to: $0) }
        } else if type == Float.self {
            try unsafe write(array.assumingMemoryBound(to: [Float].self).pointee) { try $1.write(to: $0) }
        } else if type == Date.self {
            try unsafe write(array.assumingMemoryBound(to: [Date].self).pointee) { try $1.write(to: $0) }
        } else if type == UInt8.self {
            try unsafe writeIntegers(array, of: UInt8.self)
        } else if type == Int64.self {
            try unsafe writeIntegers(array, of: Int64.self)
        } else if type == Int32.self {
            try unsafe writeIntegers(array, of: Int32.self)
        } else if type == UInt64.self {
            try unsafe writeIntegers(array, of: UInt64.self)
        } else if type == UInt32.self {
            try unsafe writeIntegers(array, of: UInt32.self)
        } else {
            return false
        }
        return true
    }

    @inline(__always)
    private mutating func writeIntegers<Value: FixedWidthInteger>(
        _ array: UnsafeRawPointer, of type: Value.Type
    ) throws {
        try unsafe write(array.assumingMemoryBound(to: [Value].self).pointee) { $0.write($1.value) }
    }

    @inline(__always)
    private mutating func write<Element>(
        _ array: [Element], _ body: (JSONTextWriter, borrowing InPlace<Element>) throws -> Void
    ) throws {
        try unsafe array.withUnsafeBufferPointer { elements in
            guard let first = elements.baseAddress else { return }
            let values = unsafe UnsafeRawPointer(first).assumingMemoryBound(to: InPlace<Element>.self)
            try unsafe write(values, count: elements.count, body)
        }
    }

    /// Writes values where they lie.
    @inline(__always)
    fileprivate mutating func write<Value: ~Copyable>(
        _ values: UnsafePointer<Value>, count: Int, _ body: (JSONTextWriter, borrowing Value) throws -> Void
    ) throws {
        var left = Self.checkInterval
        for index in 0..<count {
            try beginElement()
            try unsafe body(writer, values[index])
            left &-= 1
            if left == 0 {
                try writer.checkFailure()
                left = Self.checkInterval
            }
        }
    }

    @inline(__always)
    fileprivate mutating func write<Value>(
        _ dictionary: [String: Value], _ body: (JSONTextWriter, Value) throws -> Void
    ) throws {
        var left = Self.checkInterval
        for (key, value) in dictionary {
            try beginMember(key, isUnique: true)
            try body(writer, value)
            left &-= 1
            if left == 0 {
                try writer.checkFailure()
                left = Self.checkInterval
            }
        }
    }

    /// Closes the container, if a value within it has not done so already.
    fileprivate func closeDirect() {
        if writer.isOpen(index, id: id) { writer.close(to: index) }
    }
}
