"""Draws speed and CPU of small GETs over the number of connections, as an SVG that needs no program to be made."""

import math

import plan

WIDTH, HEIGHT = 920, 494
# The area of the lines: the left edges of the two panels, their common size and their top.
LEFTS, PANEL, TOP = (66, 532), (370, 300), 58
# Color and dash of each client. Those of one kind share the kind of line: Tern's are the thick ones.
LINES = {"tern": ("#e4572e", ""), "tern-executor": ("#c98a00", ""), "c": ("#5b7fde", ""), "hyper": ("#9a6bd0", ""),
         "go": ("#1f9eb4", ""), "ahc": ("#3f9f5b", ""), "urlsession": ("#8d8d8d", ""), "wrk": ("#8d8d8d", "2 4"),
         "h2load": ("#8d8d8d", "7 4")}
# The card has a background of its own, because a page need not follow the system's choice between light and dark.
STYLE = """\
.card { fill: #ffffff; stroke: #d0d7de } .text { fill: #1f2328 } .faint { fill: #656d76 } .grid { stroke: #e4e8ec }
@media (prefers-color-scheme: dark) {
.card { fill: #161b22; stroke: #30363d } .text { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #2b323b }
}
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
.title { font-size: 14px; font-weight: 600 } .line { fill: none; stroke-linejoin: round; stroke-linecap: round }"""


def ticks(low, high):
    """The numbers 1, 2 and 5 times a power of ten from below the smallest value to above the largest."""
    numbers = [digit * 10 ** power for power in range(-3, 9) for digit in (1, 2, 5)]
    first = max(index for index, number in enumerate(numbers) if number <= low)
    last = min(index for index, number in enumerate(numbers) if number >= high)
    return numbers[first:max(last, first + 1) + 1]


def labelled(number):
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def text(x, y, words, kind="text", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def marker(x, y, client, color):
    """A square for Tern, a circle for the other peers, nothing for the limits."""
    if client in plan.OURS:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{color}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{color}"/>' if client in plan.PEERS else ""


def line(points, client):
    color, dash = LINES[client]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    width = 3 if client in plan.OURS else 1.8
    return (f'<polyline points="{path}" class="line" stroke="{color}" stroke-width="{width}"'
            + (f' stroke-dasharray="{dash}"' if dash else "") + "/>"
            + "".join(marker(x, y, client, color) for x, y in points))


def panel(left, title, series):
    """One chart with logarithmic axes. `series`: by client, the values by the number of connections."""
    (width, height), columns = PANEL, sorted({count for values in series.values() for count in values})
    found = [value for values in series.values() for value in values.values()]
    steps = ticks(min(found), max(found))

    def x(count):
        return left + 14 + (width - 28) * columns.index(count) / max(len(columns) - 1, 1)

    def y(value):
        return TOP + height * (1 - math.log(value / steps[0]) / math.log(steps[-1] / steps[0]))

    parts = [text(left, TOP - 16, title, "text title")]
    for step in steps:
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y(step):.1f}" y2="{y(step):.1f}" class="grid"/>')
        parts.append(text(left - 8, y(step) + 4, labelled(step), "faint", "end"))
    parts += [text(x(count), TOP + height + 20, count, "faint", "middle") for count in columns]
    parts.append(text(left + width / 2, TOP + height + 38, "connections", "faint", "middle"))
    # Tern's lines are drawn last, above the others.
    for client in sorted(series, key=lambda name: name in plan.OURS):
        parts.append(line([(x(count), y(value)) for count, value in sorted(series[client].items())], client))
    return parts


def legend(clients):
    parts, columns = [], 4
    for index, client in enumerate(clients):
        x, y = LEFTS[0] - 20 + 216 * (index % columns), HEIGHT - 66 + 22 * (index // columns)
        parts += [line([(x, y), (x + 24, y)], client).split("/>")[0] + "/>", marker(x + 12, y, client, LINES[client][0]),
                  text(x + 31, y + 4, plan.TITLES[client])]
    return parts


def draw(figures):
    """The SVG. `figures`: by client, (requests a second, CPU µs a request) by the number of connections."""
    figures = {client: values for client, values in figures.items() if values}
    speed = {client: {count: value[0] for count, value in values.items()} for client, values in figures.items()}
    cpu = {client: {count: value[1] for count, value in values.items()} for client, values in figures.items()}
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-label="Small GETs: requests a second, and CPU time a request, over the number of connections">',
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" class="card"/>',
        *panel(LEFTS[0], "Small GETs: requests a second (more is better)", speed),
        *panel(LEFTS[1], "CPU µs a request (less is better)", cpu),
        *legend(list(figures)), "</svg>", ""])
