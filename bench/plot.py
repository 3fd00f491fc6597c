"""Line charts as SVG text: axes, ticks, a legend and nothing else; the same chart always gives the same bytes.

A chart is a value that a bench makes from its results. ``run.py`` writes it beside them, so that pages can show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 196, 44, 58
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#c77d0a", "#6a4c93", "#5c5c5c", "#00838f", "#8d5524")
DASHES = ("", "6 3", "2 3", "8 3 2 3")
FONT = "font-family='system-ui,Helvetica,Arial,sans-serif'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A named series of points; ``dash`` chooses one of a few patterns."""

    name: str
    points: Sequence[tuple[float, float]]
    dash: int = 0
    colour: int | None = None  # by default the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What to draw, and under which file name; linear axes begin at 0."""

    name: str
    title: str
    x: str
    y: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class _Axis:
    """Values to places along an axis of a length, and the values to mark."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """Where a value is, from 0 to 1."""
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, max(value, self.low)))
        return 0.0 if high == low else (at - low) / (high - low)


def svg(chart: Chart) -> str:
    """The chart as an SVG document."""
    x = _axis([p[0] for line in chart.lines for p in line.points], log=chart.log_x)
    y = _axis([p[1] for line in chart.lines for p in line.points], log=chart.log_y)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(value: float) -> float:
        return LEFT + x.place(value) * wide

    def down(value: float) -> float:
        return TOP + (1 - y.place(value)) * high

    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'"
        f" role='img' aria-label='{escape(chart.title, quote=True)}' {FONT} font-size='12'>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' fill='#ffffff'/>",
        _text(LEFT, 24, chart.title, size=15, weight="600"),
        *_grid(x, y, across, down),
        _text(LEFT + wide / 2, HEIGHT - 14, chart.x, anchor="middle"),
        f"<g transform='translate(18 {_n(TOP + high / 2)}) rotate(-90)'>{_text(0, 0, chart.y, anchor='middle')}</g>",
    ]
    for number, line in enumerate(chart.lines):
        parts.extend(_line(line, number, across, down))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axis(values: Sequence[float], *, log: bool) -> _Axis:
    known = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    if log:
        return _log_axis(*((min(known), max(known)) if len(known) > 0 else (1.0, 10.0)))
    most = max([*known, 0.0])
    step = _step(most / 6)
    ticks = tuple(step * i for i in range(math.ceil(most / step - 1e-9) + 1))
    return _Axis(0.0, max(ticks[-1], step), False, ticks)


def _log_axis(least: float, most: float) -> _Axis:
    """An axis between numbers like 2, 5 or 10 that enclose the values, marked at powers of ten, or closer if few."""
    first, last = math.floor(math.log10(least) + 1e-9), math.ceil(math.log10(most) - 1e-9)
    marks = [m * 10.0**power for power in range(first, last + 1) for m in (1, 2, 5)]
    low = max(mark for mark in marks if mark <= least * (1 + 1e-9))
    high = min((mark for mark in marks if mark >= most * (1 - 1e-9) and mark > low), default=marks[-1])
    inside = [mark for mark in marks if low <= mark <= high]
    tens = [10.0**power for power in range(first, last + 1) if low <= 10.0**power <= high]
    return _Axis(low, high, True, tuple(tens if len(tens) > 2 else inside))


def _step(rough: float) -> float:
    """A round number that is no less."""
    if rough <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))


def _grid(x: _Axis, y: _Axis, across: Callable[[float], float], down: Callable[[float], float]) -> list[str]:
    right, bottom = _n(WIDTH - RIGHT), _n(HEIGHT - BOTTOM)
    parts = []
    for tick in y.ticks:
        at = _n(down(tick))
        parts.append(f"<path d='M{LEFT} {at}H{right}' stroke='#e3e3e3'/>")
        parts.append(_text(LEFT - 8, down(tick) + 4, _label(tick), anchor="end"))
    for tick in x.ticks:
        at = _n(across(tick))
        parts.append(f"<path d='M{at} {bottom}v5' stroke='#666666'/>")
        parts.append(_text(across(tick), HEIGHT - BOTTOM + 20, _label(tick), anchor="middle"))
    return [*parts, f"<path d='M{LEFT} {TOP}V{bottom}H{right}' fill='none' stroke='#666666'/>"]


def _line(line: Line, number: int, across: Callable[[float], float], down: Callable[[float], float]) -> list[str]:
    colour = COLOURS[(number if line.colour is None else line.colour) % len(COLOURS)]
    points = [(across(x), down(y)) for x, y in line.points]
    dash = DASHES[line.dash % len(DASHES)]
    style = f"stroke='{colour}' stroke-width='2'" + (f" stroke-dasharray='{dash}'" if dash != "" else "")
    path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    legend, left = TOP + 8 + number * 19, WIDTH - RIGHT + 16
    return [
        f"<polyline points='{path}' fill='none' {style}/>",
        *(f"<circle cx='{_n(x)}' cy='{_n(y)}' r='2.6' fill='{colour}'/>" for x, y in points),
        f"<path d='M{left} {legend}h22' {style}/>",
        _text(left + 28, legend + 4, line.name),
    ]


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "400") -> str:
    style = f"text-anchor='{anchor}' font-size='{size}' font-weight='{weight}'"
    return f"<text x='{_n(x)}' y='{_n(y)}' fill='#222222' {style}>{escape(text)}</text>"


def _label(value: float) -> str:
    """A short text for a tick."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
