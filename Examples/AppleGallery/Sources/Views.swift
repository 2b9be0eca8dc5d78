import Foundation
import SwiftUI
import Tern
import TernImages
import TernViewModels

/// The photos as a list or a grid, with a pull to refresh. Those below the screen are loaded in advance, and those above
/// are cancelled.
struct PhotoList: View {
    let gallery: Gallery
    @State private var isGrid = false

    var body: some View {
        NavigationStack {
            content
                .navigationTitle("Photos")
                .toolbar { Button(isGrid ? "List" : "Grid") { isGrid.toggle() } }
                .refreshable { await gallery.refresh() }
                .overlay {
                    if let problem = gallery.problem { Text(problem.shortDescription) }
                }
        }
        .task { await gallery.refresh() }
    }

    @ViewBuilder
    private var content: some View {
        if isGrid {
            ScrollView {
                LazyVGrid(columns: [GridItem(.adaptive(minimum: 80))]) {
                    ForEach(gallery.photos) { photo in
                        PhotoPicture(photo: photo).onAppear { gallery.prefetch(after: photo) }
                    }
                }
            }
        } else {
            List(gallery.photos) { photo in
                NavigationLink {
                    PhotoPage(gallery: gallery, photo: photo)
                } label: {
                    PhotoRow(photo: photo)
                }
                .onAppear { gallery.prefetch(after: photo) }
            }
        }
    }
}

/// A picture and its title.
struct PhotoRow: View {
    let photo: Photo

    var body: some View {
        HStack {
            PhotoPicture(photo: photo)
            Text(photo.title)
        }
    }
}

/// A picture, decoded to its size on the screen: first from its hash, then from the network. A failure can be tried
/// again.
struct PhotoPicture: View {
    let photo: Photo

    var body: some View {
        RemoteImage(photo.request, thumbHash: photo.hash) {
            Color.gray
        } failure: { _, retry in
            Button("Try again", action: retry)
        }
        .frame(width: 80, height: 60)
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
