extension InspectorPage {
    static let style = #"""
        :root {
          --back: #ffffff; --panel: #f6f7f9; --line: #e2e5ea; --text: #1c2330; --quiet: #667085; --hover: #eef3fb;
          --chosen: #dbe8fd; --accent: #1f6feb; --good: #1a7f4b; --warn: #9a6700; --bad: #c9302c; --info: #0b6e99;
          --lookup: #b4bcc9; --connect: #f0a04b; --tls: #a77bd6; --wait: #58a55c; --receive: #3f86ea;
          --earlier: #c9ced8;
          --shadow: 0 1px 2px rgba(16, 24, 40, .06);
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --back: #14171c; --panel: #1b1f26; --line: #2b313b; --text: #e4e7ec; --quiet: #98a2b3; --hover: #20262f;
            --chosen: #1d3557; --accent: #6ea8fe; --good: #4cc38a; --warn: #e5b454; --bad: #ff7b72; --info: #5cc0e8;
            --lookup: #5d6675; --connect: #d98a36; --tls: #9a74c9; --wait: #4c9a56; --receive: #4a8ce8;
            --earlier: #414958; --shadow: none;
          }
        }
        * { box-sizing: border-box; }
        [hidden] { display: none !important; }
        html, body { height: 100%; }
        body {
          margin: 0; display: flex; flex-direction: column; background: var(--back); color: var(--text);
          font: 13px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
        }
        code, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
        .quiet { color: var(--quiet); }
        button, .button, select, input {
          font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 6px;
          padding: 4px 10px; text-decoration: none; box-shadow: var(--shadow);
        }
        button, .button { cursor: pointer; white-space: nowrap; }
        button:hover, .button:hover { background: var(--hover); }
        button[aria-pressed=true] { background: var(--chosen); border-color: var(--accent); }
        :focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
        header {
          display: flex; align-items: center; gap: 18px; padding: 9px 16px; background: var(--panel);
          border-bottom: 1px solid var(--line); flex-wrap: wrap;
        }
        .brand { display: flex; align-items: center; gap: 9px; }
        h1 { font-size: 15px; font-weight: 650; margin: 0; letter-spacing: -.01em; }
        .mark {
          width: 20px; height: 20px; border-radius: 6px;
          background: linear-gradient(135deg, var(--accent) 0 48%, transparent 48% 52%, var(--connect) 52%);
        }
        .live { display: flex; align-items: center; gap: 6px; font-size: 12px; color: var(--quiet); }
        .live::before { content: ""; width: 8px; height: 8px; border-radius: 50%; background: var(--warn); }
        .live.on::before {
          background: var(--good); box-shadow: 0 0 0 3px color-mix(in srgb, var(--good) 22%, transparent);
        }
        .live.off::before { background: var(--bad); }
        .totals { display: flex; gap: 18px; margin: 0 0 0 auto; }
        .totals div { display: flex; gap: 5px; align-items: baseline; }
        .totals dt { color: var(--quiet); font-size: 12px; }
        .totals dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; }
        .totals .bad dd { color: var(--bad); }
        .actions { display: flex; gap: 8px; }
        nav {
          display: flex; align-items: center; gap: 16px; padding: 0 16px; border-bottom: 1px solid var(--line);
          min-height: 43px; flex-wrap: wrap;
        }
        .tabs { display: flex; gap: 2px; align-self: stretch; }
        .tabs button {
          border: 0; border-bottom: 2px solid transparent; border-radius: 0; background: none; box-shadow: none;
          padding: 10px 10px 9px; color: var(--quiet);
        }
        .tabs button:hover { color: var(--text); }
        .tabs button[aria-selected=true] { color: var(--text); border-color: var(--accent); font-weight: 600; }
        .count { color: var(--quiet); font-weight: 400; font-variant-numeric: tabular-nums; }
        .filters { display: flex; align-items: center; gap: 10px; margin-left: auto; flex-wrap: wrap; padding: 6px 0; }
        #search { width: 320px; }
        .segments { display: flex; }
        .segments button { border-radius: 0; margin-left: -1px; }
        .segments button:first-child { border-radius: 6px 0 0 6px; margin: 0; }
        .segments button:last-child { border-radius: 0 6px 6px 0; }
        .segments button[aria-pressed=true] { position: relative; }
        main { flex: 1; min-height: 0; display: flex; }
        main > section { flex: 1; min-width: 0; overflow: auto; }
        main > #requests { display: flex; overflow: hidden; }
        .list {
          flex: 1; min-width: 0; overflow: auto; position: relative; outline-offset: -2px; container-type: inline-size;
        }
        .row {
          display: grid; align-items: center; height: 29px; border-bottom: 1px solid var(--line); padding: 0 0 0 16px;
          grid-template-columns: 70px minmax(200px, 1.5fr) 104px 74px 46px 78px 78px minmax(220px, 1fr); gap: 10px;
          content-visibility: auto; contain-intrinsic-size: auto 29px; scroll-margin: 30px 0 1px;
        }
        #rows .row { cursor: default; }
        #rows .row:hover { background: var(--hover); }
        #rows .row[aria-selected=true] { background: var(--chosen); }
        .row > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        .row .number, td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
        .head {
          position: sticky; top: 0; z-index: 2; background: var(--panel); color: var(--quiet); font-size: 12px;
          content-visibility: visible;
        }
        .method { font-weight: 600; font-size: 12px; }
        .url { font-size: 12px; }
        .url .host { color: var(--quiet); }
        .chip {
          display: inline-block; font: 600 10.5px/16px system-ui, sans-serif; padding: 0 6px; margin-right: 7px;
          border-radius: 8px; color: var(--info); background: color-mix(in srgb, var(--info) 14%, transparent);
        }
        .chip.warn { color: var(--warn); background: color-mix(in srgb, var(--warn) 16%, transparent); }
        .status { font-weight: 600; }
        .good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
        .info { color: var(--info); }
        .running { color: var(--quiet); font-weight: 400; }
        .lane { position: relative; align-self: stretch; overflow: hidden; }
        .lane, .axis { padding: 0; }
        .lane i {
          position: absolute; top: 9px; height: 11px; min-width: 2px;
          left: calc((var(--s) - var(--zero)) / var(--span) * 100%); width: calc(var(--w) / var(--span) * 100%);
        }
        .lane i:first-child { border-radius: 3px 0 0 3px; } .lane i:last-child { border-radius: 0 3px 3px 0; }
        .lane i:only-child { border-radius: 3px; }
        i.lookup { background: var(--lookup); } i.connect { background: var(--connect); }
        i.tls { background: var(--tls); } i.wait { background: var(--wait); }
        i.receive { background: var(--receive); } i.earlier { background: var(--earlier); }
        i.lost { background: var(--bad); } i.stored { background: var(--info); }
        i.open {
          background: repeating-linear-gradient(
            -45deg, var(--receive) 0 5px, color-mix(in srgb, var(--receive) 55%, var(--back)) 5px 10px);
        }
        .axis { position: relative; align-self: stretch; }
        .axis b {
          position: absolute; top: 0; bottom: 0; padding: 6px 0 0 5px; font-weight: 400; font-size: 11px;
          border-left: 1px solid var(--line); font-variant-numeric: tabular-nums;
        }
        .empty { color: var(--quiet); text-align: center; padding: 64px 16px; margin: 0; }
        aside {
          width: 460px; max-width: 50%; border-left: 1px solid var(--line); overflow: auto; background: var(--back);
          padding: 14px 18px 28px;
        }
        aside h2 { font-size: 13px; margin: 0 28px 4px 0; overflow-wrap: anywhere; font-weight: 600; }
        aside h3 {
          font-size: 11px; text-transform: uppercase; letter-spacing: .05em; color: var(--quiet); margin: 20px 0 7px;
          font-weight: 600;
        }
        aside .close { position: sticky; top: 0; float: right; padding: 0 8px; font-size: 16px; line-height: 22px; }
        aside .problem {
          margin: 10px 0 0; padding: 8px 11px; border-left: 3px solid var(--bad); overflow-wrap: anywhere;
          background: color-mix(in srgb, var(--bad) 9%, transparent); border-radius: 0 6px 6px 0;
        }
        .facts { display: grid; grid-template-columns: max-content 1fr; gap: 3px 14px; margin: 0; }
        .facts dt { color: var(--quiet); } .facts dd { margin: 0; overflow-wrap: anywhere; }
        .timing { display: grid; grid-template-columns: 108px 1fr 76px; gap: 5px 10px; align-items: center; }
        .timing .number { text-align: right; font-variant-numeric: tabular-nums; }
        aside .status .quiet { font-weight: 400; margin-left: 8px; }
        .timing .track { height: 9px; background: var(--panel); border-radius: 3px; position: relative; }
        .timing .track i { position: absolute; top: 0; bottom: 0; border-radius: 3px; min-width: 2px; }
        .attempt { border: 1px solid var(--line); border-radius: 8px; margin: 0 0 9px; overflow: hidden; }
        .attempt > summary {
          display: flex; gap: 9px; padding: 7px 11px; background: var(--panel); cursor: pointer; align-items: center;
        }
        .attempt > summary .path {
          overflow: hidden; text-overflow: ellipsis; white-space: nowrap; flex: 1; font-size: 12px;
        }
        .attempt .inside { padding: 2px 12px 11px; }
        .attempt h4 { font-size: 12px; margin: 9px 0 4px; color: var(--quiet); font-weight: 600; }
        .fields { margin: 0; font-size: 12px; overflow-wrap: anywhere; }
        .fields div { padding: 1px 0 1px 14px; text-indent: -14px; }
        .fields b { font-weight: 600; }
        .fields .secret { color: var(--warn); }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; padding: 6px 16px; border-bottom: 1px solid var(--line); font-weight: 400; }
        th { color: var(--quiet); font-size: 12px; background: var(--panel); position: sticky; top: 0; }
        td.url { overflow-wrap: anywhere; }
        .load { display: inline-flex; gap: 3px; vertical-align: middle; flex-wrap: wrap; }
        .load i { width: 9px; height: 9px; border-radius: 2px; background: var(--lookup); }
        .load i.active { background: var(--wait); }
        .bar { display: flex; gap: 10px; align-items: center; padding: 10px 16px; }
        .legend {
          display: flex; gap: 16px; padding: 6px 16px; border-top: 1px solid var(--line); background: var(--panel);
          color: var(--quiet); font-size: 11.5px; flex-wrap: wrap;
        }
        .legend span { display: inline-flex; align-items: center; gap: 6px; }
        .legend i { width: 10px; height: 10px; border-radius: 2px; }
        .legend .fill { flex: 1; }
        @container (max-width: 1000px) {
          .row { grid-template-columns: 54px minmax(130px, 1.3fr) 92px 66px 66px minmax(150px, 1fr); }
          .row > :nth-child(4), .row > :nth-child(5) { display: none; }
        }
        @media (max-width: 720px) {
          #requests { position: relative; }
          aside { position: absolute; inset: 0; width: auto; max-width: none; z-index: 3; }
          .filters { margin-left: 0; }
          #search { width: 100%; }
        }

        """#
}
