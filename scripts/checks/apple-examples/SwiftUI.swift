import SwiftUI
import Tern
import TernImages
import TernViewModels

// The examples for SwiftUI of Documentation/LoadingImagesIntoViews.md and BindingProgress.md, as they stand there.
// scripts/checks/apple compiles them. Nothing runs them.

private struct PhotoTile: View {
    let url: URL?

    var body: some View {
        RemoteImage(url) {
            Color.gray
        } failure: { _ in
            Image(systemName: "photo")
        }
        .frame(width: 80, height: 80)
    }
}

private struct PhotoPage: View {
    let request: ImageRequest

    var body: some View {
        RemoteImage(request) { phase, image in
            if let image {
                image.resizable().aspectRatio(contentMode: .fit)
            } else if case .failure(let error) = phase {
                Text(error.message)
            } else {
                ProgressView()
            }
        }
    }
}

private struct PhotoRow: View {
    let url: URL?
    let mirror: URL?
    let small: URL?
    let hash: String?

    var body: some View {
        RemoteImage(request, thumbHash: hash) {
            Color.gray
        } failure: { error, retry in
            Button("Try again", action: retry)
        }
        .frame(width: 80, height: 80)
    }

    private var request: ImageRequest {
        var request = ImageRequest(url, contentMode: .fill)
        request.alternatives = [.init(mirror), .lowData(small)]
        request.options.progressive = .scans
        return request
    }
}

private struct DownloadBar: View {
    let task: SessionTask<Response<Data>>
    @State private var progress = ObservableProgress()

    var body: some View {
        ProgressView(value: progress.fraction)
            .onAppear { progress.bindDownloadProgress(of: task) }
    }
}
