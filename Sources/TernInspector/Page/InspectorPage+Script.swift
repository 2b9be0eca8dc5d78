extension InspectorPage {
    static let script = listScript + detailsScript + feedScript

    /// The list: its state, the filter, and the rows.
    private static let listScript = #"""
        "use strict";
        const byId = (id) => document.getElementById(id);
        const make = (tag, classes = "", text = null) => {
          const element = document.createElement(tag);
          if (classes) element.className = classes;
          if (text !== null) element.textContent = text;
          return element;
        };
        const known = new Map();
        const view = { kind: "all", words: [], span: 0, chosen: null, isPaused: false, cleared: 0, base: 0, shown: [] };
        let connections = [];

        const bytes = (count) => {
          if (count < 1000) return count + " B";
          let value = count, unit = -1;
          do { value /= 1000; unit += 1; } while (value >= 999.5 && unit < 3);
          return value.toFixed(value < 10 ? 1 : 0) + " " + ["kB", "MB", "GB", "TB"][unit];
        };
        const time = (ms) => {
          if (ms === null || ms === undefined) return "";
          if (ms < 1) return ms.toFixed(2) + " ms";
          if (ms < 10) return ms.toFixed(1) + " ms";
          if (ms < 1000) return ms.toFixed(0) + " ms";
          if (ms < 60000) return (ms / 1000).toFixed(ms < 10000 ? 2 : 1) + " s";
          return Math.floor(ms / 60000) + " min " + Math.floor((ms % 60000) / 1000) + " s";
        };
        const age = (seconds) => {
          const value = Math.abs(seconds);
          if (value < 120) return value + " s";
          if (value < 7200) return Math.floor(value / 60) + " min";
          if (value < 172800) return Math.floor(value / 3600) + " h";
          return Math.floor(value / 86400) + " days";
        };
        const splitURL = (text) => {
          const match = /^([a-z]+:\/\/[^\/?#]*)(.*)$/i.exec(text);
          return match ? [match[1], match[2] || "/"] : ["", text];
        };
        const originOf = (text) => {
          try {
            const url = new URL(text);
            return url.protocol + "//" + url.hostname + ":" + (url.port || (url.protocol === "https:" ? "443" : "80"));
          } catch { return ""; }
        };
        const isRunning = (task) => task.state === "running" || task.state === "paused";
        const statusColor = (task) => {
          if (task.state === "failed") return "bad";
          if (task.state === "cancelled") return "warn";
          if (!task.status) return "running";
          return task.status >= 400 ? "bad" : task.status >= 300 ? "info" : "good";
        };
        const statusText = (task) => {
          if (task.state === "paused") return "paused";
          if (task.state === "failed" && task.error && task.error !== "status") return task.error;
          if (task.state === "cancelled") return "cancelled";
          if (task.status) return String(task.status);
          return task.state === "running" ? "…" : "done";
        };
        const duration = (task) => task.duration ?? Math.max(0, Date.now() - task.start);

        // The filter. `name:value` asks one property, and any other word all of them.
        const kinds = {
          all: () => true, running: isRunning,
          failed: (task) => task.state === "failed" || task.state === "cancelled" || task.status >= 400,
          slow: (task) => duration(task) >= 1000,
          cached: (task) => Boolean(task.cache),
          repeated: (task) => task.attempts.length > 1,
        };
        const properties = {
          status: (task) => String(task.status ?? ""), method: (task) => task.method.toLowerCase(),
          conn: (task) => String(task.connection ?? ""), state: (task) => task.state, label: (task) => task.label ?? "",
          session: (task) => String(task.session), error: (task) => task.error ?? "",
        };
        const matches = (task) => task.number > view.cleared && kinds[view.kind](task) && view.words.every((word) => {
          const colon = word.indexOf(":");
          const property = colon > 0 ? properties[word.slice(0, colon)] : undefined;
          if (property) {
            const value = word.slice(colon + 1), own = property(task).toLowerCase();
            return word.startsWith("conn:") || word.startsWith("session:") ? own === value : own.startsWith(value);
          }
          const all = [task.url, task.method, statusText(task), task.label ?? "", task.version ?? ""];
          return all.join(" ").toLowerCase().includes(word);
        });

        // Rows are made once, and changed in place.
        const makeRow = (number) => {
          const row = make("div", "row");
          row.setAttribute("role", "option");
          const cells = {
            method: make("span", "method mono"), url: make("span", "url mono"), status: make("span", "status"),
            version: make("span", "quiet"), connection: make("span", "number quiet"), size: make("span", "number"),
            time: make("span", "number"), lane: make("span", "lane"),
          };
          row.append(...Object.values(cells));
          row.addEventListener("click", () => choose(number));
          return { row, cells };
        };
        const bar = (kind, start, width) => {
          const piece = make("i", kind);
          piece.style.setProperty("--s", (start - view.base).toFixed(3));
          piece.style.setProperty("--w", Math.max(0, width).toFixed(3));
          return piece;
        };
        const bars = (task) => {
          const pieces = [];
          const last = task.attempts.length - 1;
          task.attempts.slice(0, Math.max(0, last)).forEach((attempt) => {
            const kind = attempt.error || attempt.status >= 500 ? "lost" : "earlier";
            pieces.push(bar(kind, task.start + attempt.start, attempt.duration ?? 0));
          });
          const begin = task.start + (last >= 0 ? task.attempts[last].start : 0);
          if (isRunning(task)) {
            pieces.push(bar("open", begin, duration(task) - (begin - task.start)));
            return pieces;
          }
          const whole = duration(task) - (begin - task.start);
          if (task.cache && last < 0) return [bar("stored", begin, whole)];
          const phases = ["lookup", "connect", "tls", "wait", "receive"].filter((name) => task.phases[name] > 0);
          const sum = phases.reduce((total, name) => total + task.phases[name], 0);
          if (!sum) return pieces.concat(bar(task.state === "done" ? "receive" : "lost", begin, whole));
          // The phases are those of the last attempt, which can be shorter than the wait for it.
          let place = Math.max(begin, task.start + duration(task) - sum);
          if (place - begin > 0.2) pieces.push(bar("lookup", begin, place - begin));
          phases.forEach((name) => {
            pieces.push(bar(name, place, task.phases[name]));
            place += task.phases[name];
          });
          if (task.state === "failed") pieces.push(bar("lost", place, 0));
          return pieces;
        };
        const fill = (entry) => {
          const { task, cells } = entry;
          cells.method.textContent = task.method;
          const [origin, path] = splitURL(task.url);
          const count = task.attempts.length, chips = [];
          if (count > 1) chips.push(make("span", "chip warn", count + " requests"));
          if (task.cache) chips.push(make("span", "chip", task.cache));
          if (task.label) chips.push(make("span", "chip", task.label));
          cells.url.replaceChildren(...chips, make("span", "host", origin.replace(/^https?:\/\//, "")), path);
          cells.url.title = task.url;
          cells.status.className = "status " + statusColor(task);
          cells.status.textContent = statusText(task);
          cells.version.textContent = task.version ?? "";
          cells.connection.textContent = task.connection ?? "";
          const isPart = isRunning(task) && task.total > 0;
          cells.size.textContent = isPart ? Math.floor(task.received / task.total * 100) + " %"
            : task.received || !isRunning(task) ? bytes(task.received) : "";
          cells.time.textContent = time(duration(task));
          cells.lane.replaceChildren(...bars(task));
        };

        // The waterfall has one scale, for the rows in view or for all rows.
        const rowHeight = 29;
        const inView = (shown) => {
          const list = byId("list");
          const first = Math.floor(list.scrollTop / rowHeight);
          return shown.slice(first, first + Math.ceil(list.clientHeight / rowHeight));
        };
        const scale = () => {
          let from = Infinity, to = -Infinity;
          for (const { task } of view.span ? view.shown : inView(view.shown)) {
            from = Math.min(from, task.start);
            to = Math.max(to, task.start + duration(task));
          }
          if (from === Infinity) { from = Date.now() - 1000; to = from + 1000; }
          if (view.span && to - from > view.span) from = to - view.span;
          const length = Math.max(1, (to - from) * 1.02);
          const list = byId("list");
          list.style.setProperty("--zero", (from - view.base).toFixed(3));
          list.style.setProperty("--span", length.toFixed(3));
          const axis = byId("axis");
          axis.replaceChildren(...[0, 1, 2, 3].map((part) => {
            const tick = make("b", "", part ? time(length * part / 4) : "0");
            tick.style.left = part * 25 + "%";
            return tick;
          }));
        };
        const arrange = () => {
          const list = byId("list"), rows = byId("rows");
          const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 40;
          const shown = [...known.values()].filter((entry) => matches(entry.task));
          shown.sort((one, other) => one.task.number - other.task.number);
          shown.forEach((entry, index) => {
            if (rows.children[index] !== entry.row) rows.insertBefore(entry.row, rows.children[index] ?? null);
          });
          while (rows.children.length > shown.length) rows.lastChild.remove();
          view.shown = shown;
          byId("empty").hidden = shown.length > 0;
          byId("empty").textContent = known.size ? "No request matches the filter."
            : "No requests yet. They appear here as the program sends them.";
          const isAll = shown.length === known.size;
          byId("count-requests").textContent = isAll ? known.size : shown.length + " of " + known.size;
          if (isAtEnd && view.chosen === null) list.scrollTop = list.scrollHeight;
          scale();
        };

        """#

    /// The details of a request, the connections and the cache.
    private static let detailsScript = #"""
        const fieldList = (fields) => {
          const list = make("div", "fields mono");
          for (const [name, value] of fields) {
            const line = make("div");
            line.append(make("b", "", name), ": ", make("span", value === "<redacted>" ? "secret" : "", value));
            list.append(line);
          }
          if (!fields.length) list.append(make("div", "quiet", "None."));
          return list;
        };
        const timing = (task) => {
          const grid = make("div", "timing");
          const names = {
            lookup: "Queue and DNS", connect: "Connect", tls: "TLS", wait: "Waiting", receive: "Receiving",
          };
          const phases = Object.keys(names).filter((name) => (task.phases[name] ?? null) !== null);
          const sum = phases.reduce((total, name) => total + task.phases[name], 0) || 1;
          let place = 0;
          phases.forEach((name) => {
            const piece = make("i", name);
            piece.style.left = place / sum * 100 + "%";
            piece.style.width = task.phases[name] / sum * 100 + "%";
            place += task.phases[name];
            const track = make("span", "track");
            track.append(piece);
            grid.append(make("span", "quiet", names[name]), track, make("span", "number", time(task.phases[name])));
          });
          grid.append(make("b", "", "Whole task"), make("span"), make("b", "number", time(duration(task))));
          return grid;
        };
        const causes = {
          first: "request", redirect: "redirect", challenge: "after a challenge", retry: "retry", again: "sent again",
        };
        const attemptView = (attempt, index, isOpen) => {
          const box = make("details", "attempt");
          box.open = isOpen;
          const line = make("summary");
          const result = attempt.status ? String(attempt.status) : attempt.error ? "failed" : "…";
          const color = attempt.status >= 400 || attempt.error ? "bad" : attempt.status >= 300 ? "info" : "good";
          line.append(
            make("span", "status " + color, result),
            make("span", "path mono", attempt.method + " " + attempt.url),
            make("span", "quiet", index ? causes[attempt.cause] + " at " + time(attempt.start)
              : time(attempt.duration)));
          const inside = make("div", "inside");
          if (attempt.error) inside.append(make("p", "problem", attempt.error));
          inside.append(make("h4", "", "Request fields"), fieldList(attempt.requestHeaders));
          if (attempt.status) {
            const phrase = attempt.reasonPhrase ? " – " + attempt.status + " " + attempt.reasonPhrase : "";
            inside.append(make("h4", "", "Response fields" + phrase), fieldList(attempt.responseHeaders));
          }
          box.append(line, inside);
          return box;
        };
        const showDetails = (details) => {
          const panel = byId("details");
          const { row: task } = details;
          const close = make("button", "close", "×");
          close.type = "button";
          close.setAttribute("aria-label", "Close the details");
          close.addEventListener("click", () => choose(null));
          const state = make("p", "status " + statusColor(task), statusText(task));
          state.append(make("span", "quiet", time(duration(task)) + ", " + bytes(task.received) + " received"));
          panel.replaceChildren(close, make("h2", "mono", task.method + " " + task.url), state);
          if (details.error) panel.append(make("p", "problem", details.error));
          panel.append(make("h3", "", "Timing"), timing(task));
          const count = details.attempts.length + details.omittedAttempts;
          panel.append(make("h3", "", count === 1 ? "Request" : count + " requests on the wire"));
          details.attempts.forEach((attempt, index) => {
            panel.append(attemptView(attempt, index, index === details.attempts.length - 1));
          });
          if (details.omittedAttempts) {
            panel.append(make("p", "quiet", details.omittedAttempts + " requests between them are left out."));
          }
          if (!count) panel.append(make("p", "quiet", "No request was sent: the cache has answered."));
          const facts = make("dl", "facts");
          for (const { name, value } of details.facts) facts.append(make("dt", "", name), make("dd", "mono", value));
          panel.append(make("h3", "", "Facts"), facts);
          panel.hidden = false;
        };
        const loadDetails = async () => {
          const number = view.chosen;
          if (number === null) return;
          try {
            const answer = await fetch("tasks/" + number);
            if (!answer.ok || view.chosen !== number) return;
            showDetails(await answer.json());
          } catch { /* The page shows that the connection is lost. */ }
        };
        const choose = (number) => {
          known.get(view.chosen)?.row.removeAttribute("aria-selected");
          view.chosen = number;
          const entry = known.get(number);
          if (!entry) {
            view.chosen = null;
            byId("details").hidden = true;
            return;
          }
          entry.row.setAttribute("aria-selected", "true");
          entry.row.scrollIntoView({ block: "nearest" });
          loadDetails();
        };

        const tableOf = (names) => {
          const table = make("table"), head = make("tr");
          names.forEach((name) => head.append(make("th", /^(Size|Age|Requests)/.test(name) ? "number" : "", name)));
          const top = make("thead"), body = make("tbody");
          top.append(head);
          table.append(top, body);
          return { table, body };
        };
        const showConnections = () => {
          const under = new Map();
          for (const { task } of known.values()) {
            if (isRunning(task)) under.set(originOf(task.url), (under.get(originOf(task.url)) ?? 0) + 1);
          }
          const open = new Map(connections.map((entry) => [entry.origin, entry]));
          const origins = [...new Set([...open.keys(), ...under.keys()])].sort();
          const count = connections.reduce((sum, entry) => sum + entry.active + entry.idle, 0);
          byId("count-connections").textContent = count || "";
          if (byId("connections").hidden) return;
          const { table, body } = tableOf(["Origin", "Connections", "Active and idle", "Requests under way"]);
          for (const origin of origins) {
            const entry = open.get(origin) ?? { active: 0, idle: 0 };
            const line = make("tr"), load = make("span", "load"), cell = make("td");
            for (let index = 0; index < Math.min(64, entry.active + entry.idle); index += 1) {
              load.append(make("i", index < entry.active ? "active" : ""));
            }
            cell.append(load);
            line.append(
              make("td", "mono", origin), cell,
              make("td", "", entry.active + " active, " + entry.idle + " idle"),
              make("td", "number", String(under.get(origin) ?? 0)));
            body.append(line);
          }
          byId("connections").replaceChildren(
            origins.length ? table : make("p", "empty", "No open connection, and no request under way."));
        };
        const loadCache = async () => {
          const section = byId("cache");
          const refresh = make("button", "", "Refresh");
          refresh.type = "button";
          refresh.addEventListener("click", loadCache);
          const line = make("div", "bar");
          let stored = [];
          try {
            const answer = await fetch("cache");
            stored = answer.ok ? await answer.json() : [];
          } catch { /* The page shows that the connection is lost. */ }
          line.append(refresh, make("span", "quiet", stored.length + (stored.length === 500 ? " or more" : "")
            + (stored.length === 1 ? " stored response" : " stored responses")));
          const { table, body } = tableOf(["Method", "URL", "Status", "Freshness", "Age", "Size"]);
          for (const entry of stored) {
            const row = make("tr"), isFresh = entry.timeToLive >= 0;
            row.append(
              make("td", "method mono", entry.method), make("td", "url mono", entry.url),
              make("td", "", String(entry.status)),
              make("td", isFresh ? "good" : "warn", (isFresh ? "fresh for " : "stale for ") + age(entry.timeToLive)),
              make("td", "number", age(entry.age)),
              make("td", "number", bytes(entry.bytes) + (entry.isWhole ? "" : " (a part)")));
            body.append(row);
          }
          section.replaceChildren(line, stored.length ? table
            : make("p", "empty", "No stored response. The session has no cache, or it is empty."));
        };

        """#

    /// The events of the server, and those of the page.
    private static let feedScript = #"""
        const take = (update) => {
          if (update.isFirst) {
            known.clear();
            byId("rows").replaceChildren();
            view.base = update.tasks[0]?.start ?? Date.now();
          }
          for (const task of update.tasks) {
            let entry = known.get(task.number);
            if (!entry) known.set(task.number, entry = makeRow(task.number));
            entry.task = task;
            fill(entry);
          }
          for (const [number, { task }] of known) {
            if (task.end && task.end < update.firstEnd && number !== view.chosen) known.delete(number);
          }
          if (update.connections) connections = update.connections;
          const { totals } = update;
          const running = totals.started - totals.ended;
          const items = [
            ["Requests", totals.started], ["Running", Math.max(0, running)],
            ["Failed", totals.failed, totals.failed > 0],
            ["Received", bytes(totals.received)], ["Sent", bytes(totals.sent)],
          ];
          byId("totals").replaceChildren(...items.map(([name, value, isBad]) => {
            const item = make("div", isBad ? "bad" : "");
            item.append(make("dt", "", name), make("dd", "", String(value)));
            return item;
          }));
          byId("session").textContent = "session " + update.session;
          if (update.omitted) {
            byId("omitted").textContent = "Busy: of the last changes, the newest " + update.tasks.length
              + " are shown.";
          } else {
            byId("omitted").textContent = "";
          }
          arrange();
          showConnections();
          if (update.tasks.some((task) => task.number === view.chosen)) loadDetails();
        };
        let waiting = [];
        const live = byId("live");
        const showLive = (text, state) => { live.textContent = text; live.className = "live " + state; };
        const source = new EventSource("events");
        source.onopen = () => showLive(view.isPaused ? "Paused" : "Live", view.isPaused ? "" : "on");
        source.onerror = () => {
          const hasEnded = source.readyState === EventSource.CLOSED;
          showLive(hasEnded ? "Ended" : "Connection lost, trying again", "off");
        };
        source.onmessage = (event) => {
          const update = JSON.parse(event.data);
          if (view.isPaused && !update.isFirst) {
            waiting.push(update);
            if (waiting.length > 200) waiting.shift();
          } else {
            take(update);
          }
        };
        // Tasks that run grow without events.
        setInterval(() => {
          if (view.isPaused || document.hidden) return;
          const running = [...known.values()].filter(({ task }) => isRunning(task));
          if (!running.length) return;
          running.forEach(fill);
          scale();
        }, 250);

        byId("pause").addEventListener("click", (event) => {
          view.isPaused = !view.isPaused;
          event.currentTarget.setAttribute("aria-pressed", String(view.isPaused));
          event.currentTarget.textContent = view.isPaused ? "Resume" : "Pause";
          if (source.readyState === EventSource.OPEN) source.onopen();
          if (!view.isPaused) { waiting.forEach(take); waiting = []; }
        });
        let willScale = false;
        byId("list").addEventListener("scroll", () => {
          if (willScale || view.span) return;
          willScale = true;
          requestAnimationFrame(() => { willScale = false; scale(); });
        });
        byId("clear").addEventListener("click", () => {
          choose(null);
          view.cleared = Math.max(0, ...known.keys());
          for (const [number, { task }] of known) if (!isRunning(task)) known.delete(number);
          view.cleared = known.size ? Math.min(...known.keys()) - 1 : view.cleared;
          arrange();
        });
        byId("search").addEventListener("input", (event) => {
          view.words = event.currentTarget.value.toLowerCase().split(/\s+/).filter(Boolean);
          arrange();
        });
        byId("span").addEventListener("change", (event) => {
          view.span = Number(event.currentTarget.value);
          arrange();
        });
        document.querySelectorAll("[data-kind]").forEach((button) => button.addEventListener("click", () => {
          view.kind = button.dataset.kind;
          document.querySelectorAll("[data-kind]").forEach((other) =>
            other.setAttribute("aria-pressed", String(other === button)));
          arrange();
        }));
        const tabs = ["requests", "connections", "cache"];
        tabs.forEach((name) => byId("tab-" + name).addEventListener("click", () => {
          tabs.forEach((other) => {
            byId(other).hidden = other !== name;
            byId("tab-" + other).setAttribute("aria-selected", String(other === name));
          });
          byId("filters").hidden = name !== "requests";
          byId("legend").hidden = name !== "requests";
          if (name === "cache") loadCache();
          if (name === "connections") showConnections();
        }));
        document.addEventListener("keydown", (event) => {
          if (event.target === byId("search")) {
            if (event.key === "Escape") byId("search").blur();
            return;
          }
          if (event.key === "/") { event.preventDefault(); byId("search").focus(); return; }
          if (event.key === "Escape") return choose(null);
          if ((event.key !== "ArrowDown" && event.key !== "ArrowUp") || byId("requests").hidden) return;
          const numbers = view.shown.map(({ task }) => task.number);
          if (!numbers.length) return;
          event.preventDefault();
          const place = numbers.indexOf(view.chosen), step = event.key === "ArrowDown" ? 1 : -1;
          choose(numbers[place < 0 ? (step > 0 ? 0 : numbers.length - 1)
            : Math.min(numbers.length - 1, Math.max(0, place + step))]);
        });
        arrange();

        """#
}
