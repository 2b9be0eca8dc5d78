#if os(Linux)
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// JPEG files of 32 × 16 pixels and quality 95 that libjpeg wrote, in Base64.
///
/// The pictures have stripes of 8 columns. In turn, one of red, green and blue is 220, and the others are 30 +
/// 100·y/16. In pictures with inks, one of cyan, magenta and yellow, or none, is 200 in turn, the other two or three
/// are 20, and black is 100·y/16.
enum JPEGFiles {
    /// YCbCr, each component in a separate scan.
    static let separate = decode(
        """
        /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoK
        CgoKBggLDAsKDAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoK
        CgoKCgoKCgr/wAARCAAQACADASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAACAcJ/8QAHRAAAQQDAQEAAAAAAAAAAAAAAQAX
        U5EWZJJSof/aAAgBAQAAPwCLNeYRSYeInwaWYDN6x5V8a8wikjWvMIpInERGeUHmb1firDXmEUv/xAAUAQEAAAAAAAAAAAAAAAAA
        AAAI/8QAIhEAAAQEBwAAAAAAAAAAAAAAAAUSEwYIFCERFRYxosLR/9oACAECEQA/ADfFRFUs22V1DvmtM9R5NfFFRyY8H//EABUB
        AQEAAAAAAAAAAAAAAAAAAAUH/8QAIxEAAAMGBwAAAAAAAAAAAAAAAAgTAwURFBUWEiFBoaLR0v/aAAgBAxEAPwBc97W8Ld1Sm+Ur
        5FhLQ+KDVc4Y0Nlux//Z
        """
    )

    /// YCbCr with a restart marker every second block.
    static let restarted = decode(
        """
        /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoK
        CgoKBggLDAsKDAkKCgr/2wBDAQICAgICAgUDAwUKBwYHCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoK
        CgoKCgoKCgr/wAARCAAQACADASIAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAABgcICf/EAB0QAAEEAwEBAAAAAAAAAAAAAAEA
        F1ORFmSSUqH/xAAWAQEBAQAAAAAAAAAAAAAAAAAIBQf/xAAmEQAAAwYFBQAAAAAAAAAAAAAAExQFCBIVFiEDBhGi0TFBocLS/90A
        BAAC/9oADAMBAAIRAxEAPwBLNeYRSsPET4NIJa8wilROIiM8o35qYSkm3SL1Fd+/FrCne5Svcl+RjazeseU/GvMIpGrN6vxNhrzC
        KTvetadRya+sCjcRwNhdobEhmt9IyPB3I//Z
        """
    )

    /// Stored as RGB, with Adobe's marker.
    static let rgb = decode(
        """
        /9j/7gAOQWRvYmUAZAAAAAAA/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkKCgoK
        CgYICwwLCgwJCgoK/8AAEQgAEAAgA1IRAEcRAEIRAP/EABcAAQEBAQAAAAAAAAAAAAAAAAkACgj/xAAXEAADAQAAAAAAAAAAAAAA
        AAAAF2Si/9oADANSAEcAQgAAPwBcAzUdLkM1HS5MrqOlyaoiR0uSR0uTK6jpcmqI1REjpcmV1HS5I7IR0uTshHS5AlR0uR2iR0uS
        R0uQJUdLkdodokdLkCVHS5P/2Q==
        """
    )

    /// Grey. Each column is 255/32 of a level lighter.
    static let grey = decode(
        """
        /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoK
        CgoKBggLDAsKDAkKCgr/wAALCAAQACABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAACQr/xAAbEAACAgMBAAAAAAAAAAAAAAAACESB
        AQMxcf/aAAgBAQAAPwAa1u7o9wIAtsehAFtj0IAtseiP9bu6PcCALbHoQBbY9CALbHo//9k=
        """
    )

    /// CMYK as Adobe writes it, inverted.
    static let cmyk = decode(
        """
        /9j/7gAOQWRvYmUAZAAAAAAA/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkKCgoK
        CgYICwwLCgwJCgoK/8AAFAgAEAAgBEMRAE0RAFkRAEsRAP/EABcAAQEBAQAAAAAAAAAAAAAAAAAKCQj/xAAXEAEAAwAAAAAAAAAA
        AAAAAAAAF2Si/9oADgRDAE0AWQBLAAA/AM221jaxtNONrStBJeE42tCtBJeTja0CtAnG1pJeDjecbWlaCS8JxtaFaCS8nG1oFaBO
        NrT/2Q==
        """
    )

    /// YCCK as Adobe writes it, inverted.
    static let ycck = decode(
        """
        /9j/7gAOQWRvYmUAZAAAAAAC/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkKCgoK
        CgYICwwLCgwJCgoK/9sAQwECAgICAgIFAwMFCgcGBwoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoKCgoK
        CgoKCgoK/8AAFAgAEAAgBAERAAIRAQMRAQQRAP/EABcAAQEBAQAAAAAAAAAAAAAAAAAICQf/xAAXEAEAAwAAAAAAAAAAAAAAAAAA
        F2Si/8QAGAEAAwEBAAAAAAAAAAAAAAAABwkKBgj/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADgQBAAIRAxEEAAA/AInAc2htNONr
        S0AHS1k42tMq1LDvAnG1pyspdvCcbWlsAObQjecbWloAOlrJxtaZVqWHeBONrTlZS7eE42tP/9k=
        """
    )

    /// CMYK without Adobe's marker, which is also inverted.
    static let plainCMYK = decode(
        """
        /9j/2wBDAAIBAQEBAQIBAQECAgICAgQDAgICAgUEBAMEBgUGBgYFBgYGBwkIBgcJBwYGCAsICQoKCgoKBggLDAsKDAkKCgr/wAAU
        CAAQACAEQxEATREAWREASxEA/8QAFwABAQEBAAAAAAAAAAAAAAAAAAoJCP/EABcQAQADAAAAAAAAAAAAAAAAAAAXZKL/2gAOBEMA
        TQBZAEsAAD8AzbbWNrG0042tK0El4Tja0K0El5ONrQK0CcbWkl4ON5xtaVoJLwnG1oVoJLycbWgVoE42tP/Z
        """
    )

    private static func decode(_ text: String) -> [UInt8] {
        [UInt8](Data(base64Encoded: text, options: .ignoreUnknownCharacters) ?? Data())
    }
}
#endif
