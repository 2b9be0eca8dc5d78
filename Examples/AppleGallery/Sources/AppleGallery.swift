import Foundation
import SwiftUI

#if canImport(AppKit)
import AppKit
#endif

/// A list of photos that can be refreshed, a page for each, and a download. `--self-check` checks what the widgets of
/// this system show, and ends the process with 0 if all is well.
@main
struct AppleGallery: App {
    @State private var gallery = Result { try Gallery() }

    init() {
        #if canImport(AppKit)
        // Without a bundle, a process has no windows in front otherwise.
        NSApplication.shared.setActivationPolicy(.regular)
        #endif
        if CommandLine.arguments.contains("--self-check") {
            Task { exit(await SelfCheck().run()) }
        }
    }

    var body: some Scene {
        WindowGroup {
            switch gallery {
            case .success(let gallery): PhotoList(gallery: gallery)
            case .failure(let error): Text(verbatim: "The server of the photos did not start: \(error)")
            }
        }
    }
}
