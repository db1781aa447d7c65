"""Curves as a small SVG: ready clusters over time."""

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 52, 150, 34, 40
COLOURS = ("#1f6feb", "#d1242f", "#8250df", "#1a7f37", "#9a6700", "#57606a")

Points = Sequence[tuple[float, float]]


def steps(times: Sequence[float]) -> Points:
    """(time, how many by then) of each event."""
    return [(0.0, 0.0), *((at, float(number)) for number, at in enumerate(sorted(times), 1))]


def svg(title: str, curves: Mapping[str, Points], axis: str = "ready clusters") -> str:
    """One picture with a line per curve and its name at the right."""
    far = max((x for points in curves.values() for x, _ in points), default=1.0) or 1.0
    high = max((y for points in curves.values() for _, y in points), default=1.0) or 1.0

    def place(x: float, y: float) -> str:
        across = LEFT + x / far * (WIDTH - LEFT - RIGHT)
        return f"{across:.1f},{HEIGHT - BOTTOM - y / high * (HEIGHT - TOP - BOTTOM):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif"'
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
    ]
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(far * part, 0).split(",")[0], place(0, high * part).split(",")[1]
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y}" text-anchor="end" dy="4">{high * part:.0f}</text>')
        parts.append(f'<text x="{x}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{far * part:.1f}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">seconds</text>')
    middle = HEIGHT / 2
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(axis)}</text>'
    )
    for number, (name, points) in enumerate(curves.items()):
        colour, line = COLOURS[number % len(COLOURS)], " ".join(place(x, y) for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 16 * number}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
