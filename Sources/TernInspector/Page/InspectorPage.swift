/// The page: one document without other resources. Its script builds every text that comes from a request by
/// `textContent`, so that nothing of it becomes markup.
enum InspectorPage {
    /// The page, whose style and script have a nonce.
    static func text(nonce: String) -> String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>Requests – Tern Inspector</title>
        <link rel="icon" href="data:,">
        <style nonce="\(nonce)">
        \(style)</style>
        </head>
        \(body)
        <script nonce="\(nonce)">
        \(script)</script>
        </html>

        """
    }

    /// The value of `Content-Security-Policy`: what the page itself has, and requests to its own server.
    static func policy(nonce: String) -> String {
        """
        default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; connect-src 'self'; \
        img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """
    }

    private static let body = #"""
        <body>
        <header>
          <div class="brand">
            <span class="mark" aria-hidden="true"></span>
            <h1>Tern Inspector</h1>
            <span id="session" class="quiet"></span>
          </div>
          <div id="live" class="live" role="status">Connecting</div>
          <dl id="totals" class="totals"></dl>
          <div class="actions">
            <button id="pause" type="button" aria-pressed="false">Pause</button>
            <button id="clear" type="button">Clear</button>
            <a id="export" class="button" href="requests.har" download="requests.har">Export HAR</a>
          </div>
        </header>
        <nav aria-label="Views">
          <div class="tabs" role="tablist">
            <button role="tab" type="button" id="tab-requests" aria-selected="true" aria-controls="requests">Requests
              <span id="count-requests" class="count"></span></button>
            <button role="tab" type="button" id="tab-connections" aria-selected="false"
              aria-controls="connections">Connections <span id="count-connections" class="count"></span></button>
            <button role="tab" type="button" id="tab-cache" aria-selected="false" aria-controls="cache">Cache</button>
          </div>
          <div id="filters" class="filters">
            <input id="search" type="search" placeholder="Filter, or status:404, conn:3, method:post"
              aria-label="Filter requests" spellcheck="false" autocomplete="off">
            <div class="segments" role="group" aria-label="Kinds of requests">
              <button type="button" data-kind="all" aria-pressed="true">All</button>
              <button type="button" data-kind="running" aria-pressed="false">Running</button>
              <button type="button" data-kind="failed" aria-pressed="false">Failed</button>
              <button type="button" data-kind="slow" aria-pressed="false">Slow</button>
              <button type="button" data-kind="cached" aria-pressed="false">Cached</button>
              <button type="button" data-kind="repeated" aria-pressed="false">Repeated</button>
            </div>
            <label class="quiet">Span
              <select id="span">
                <option value="0">rows in view</option>
                <option value="Infinity">all rows</option>
                <option value="60000">1 min</option>
                <option value="10000">10 s</option>
                <option value="1000">1 s</option>
              </select>
            </label>
          </div>
        </nav>
        <main>
          <section id="requests" role="tabpanel" aria-labelledby="tab-requests">
            <div class="list" id="list" tabindex="0" aria-label="Requests">
              <div class="row head" aria-hidden="true">
                <span>Method</span><span>URL</span><span>Status</span><span>Protocol</span>
                <span class="number">Conn</span><span class="number">Size</span><span class="number">Time</span>
                <span class="axis" id="axis"></span>
              </div>
              <div id="rows"></div>
              <p id="empty" class="empty">No requests yet. They appear here as the program sends them.</p>
            </div>
            <aside id="details" hidden aria-label="Details of a request"></aside>
          </section>
          <section id="connections" role="tabpanel" aria-labelledby="tab-connections" hidden></section>
          <section id="cache" role="tabpanel" aria-labelledby="tab-cache" hidden></section>
        </main>
        <footer class="legend" id="legend" aria-hidden="true">
          <span><i class="lookup"></i>Queue and DNS</span><span><i class="connect"></i>Connect</span>
          <span><i class="tls"></i>TLS</span><span><i class="wait"></i>Waiting</span>
          <span><i class="receive"></i>Receiving</span><span><i class="earlier"></i>Earlier request</span>
          <span class="fill"></span><span id="omitted"></span>
        </footer>
        </body>
        """#
}
