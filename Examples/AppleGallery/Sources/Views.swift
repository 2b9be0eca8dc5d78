import Foundation
import SwiftUI
import Tern
import TernImages
import TernViewModels

/// The photos, with a pull to refresh. Those below the screen are loaded in advance.
struct PhotoList: View {
    let gallery: Gallery

    var body: some View {
        NavigationStack {
            List(gallery.photos) { photo in
                NavigationLink {
                    PhotoPage(gallery: gallery, photo: photo)
                } label: {
                    PhotoRow(photo: photo)
                }
                .onAppear { gallery.prefetch(after: photo) }
            }
            .navigationTitle("Photos")
            .refreshable { await gallery.refresh() }
            .overlay {
                if let problem = gallery.problem { Text(problem.shortDescription) }
            }
        }
        .task { await gallery.refresh() }
    }
}

/// A picture, decoded to the size of the row, and its title.
struct PhotoRow: View {
    let photo: Photo

    var body: some View {
        HStack {
            RemoteImage(photo.url) {
                Color.gray
            } failure: { _ in
                Image(systemName: "photo")
            }
            .frame(width: 80, height: 60)
            Text(photo.title)
        }
    }
}

/// A picture in full, and a download with its progress.
struct PhotoPage: View {
    let gallery: Gallery
    let photo: Photo
    @State private var task: SessionTask<URL>?
    @State private var progress = ObservableProgress()
    @State private var isPaused = false

    var body: some View {
        VStack {
            RemoteImage(ImageRequest(photo.url)) { phase, image in
                if let image {
                    image.resizable().aspectRatio(contentMode: .fit)
                } else if case .failure(let error) = phase {
                    Text(error.message)
                } else {
                    ProgressView()
                }
            }
            ProgressView(value: progress.fraction)
            HStack {
                Button("Download") { download() }
                Button(isPaused ? "Resume" : "Pause") { pause() }
                Button("Cancel") { task?.cancel() }
            }
        }
        .navigationTitle(photo.title)
        .onDisappear { task?.cancel() }
    }

    private func download() {
        task?.cancel()
        let task = gallery.download()
        self.task = task
        isPaused = false
        progress.bindDownloadProgress(of: task)
    }

    private func pause() {
        if isPaused { task?.resume() } else { task?.pause() }
        isPaused.toggle()
    }
}
