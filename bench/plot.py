#!/usr/bin/env python3
"""plot.py: figures of skep-bench as SVG charts and markdown tables. Standard library only.

    skep-bench compare --workloads get,scan100 --json > run.json
    plot.py bar   --x workload --series engine --y mops --out mops.svg run.json
    plot.py line  --x workload --x-match 'scan(\\d+)' --series engine --log-x --log-y ... run.json
    plot.py table --x workload --series engine --y ratio run.json        # to standard output
    plot.py table --x workload --series engine --y mops=M/s --y 'p99_ns/1000=p99, us' \\
        --into page.md --section speed --image mops.svg run.json

Input: files of JSON objects, one a line. An object with `rows` gives one point for each of them,
which has the object's own fields too (so options can be x or series); any other object is one point.
Points with equal x and series are averaged by their median, and so is a y that is a list. A point
whose y is null or an empty list is left out.

A y is FIELD, FIELD/DIVISOR, or one of these with =LABEL. A chart has one; a table has a column for
each of them and each series, but for those whose names --omit finds.

With --into the table goes into a page, between the lines `<!-- figures of NAME -->` and `<!-- end of
NAME -->`, which are there already, instead of what is between them; before it an image of the chart
(--image), behind it how it was made: every command, the machine, the date and the commit, from the
same files. So no figure is copied by hand, and what a page says of its figures is true.

The x axis of a line has numbers; with --x-match they are what the first group of a regular expression
finds in the field. --in-order joins its points in the order they are met, for curves that turn
back. In bars and tables x are words, in the order they are met. A `{a}` in --x or
--series is replaced by field a: --x '{workload} {dist}'. The chart follows the reader's preference
for dark or light.
"""

import argparse
import json
import math
import re
import statistics
import sys
from xml.sax.saxutils import escape, quoteattr

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP = 66, 16, 40
X_TITLE_HEIGHT, LEGEND_LINE_HEIGHT, LABEL_HEIGHT = 20, 18, 20
CHARACTER_WIDTH = 6.6
LIGHT = ["#0969da", "#d1570b", "#1a7f37", "#8250df", "#bf3989", "#57606a", "#9a6700", "#0e8a8a"]
DARK = ["#58a6ff", "#ff9b5e", "#56d364", "#bc8cff", "#ff80c8", "#b1bac4", "#e3b341", "#56d4dd"]
COLOURS = len(LIGHT)


def series_style(colours):
    """Uses no CSS variables, which not every program that shows SVG knows."""
    return "\n".join(f".c{i}.bar, .c{i}.dot {{ fill: {colour}; }} .c{i}.line {{ stroke: {colour}; }}"
                     for i, colour in enumerate(colours))


STYLE = f"""
svg {{ background: #ffffff; font: 12px system-ui, sans-serif; }}
text {{ fill: #24292f; }} .title {{ font-size: 15px; font-weight: 600; }}
.grid {{ stroke: #d8dee4; }} .axis {{ stroke: #57606a; }}
.mark {{ stroke: #57606a; stroke-dasharray: 6 4; }}
.line {{ fill: none; stroke-width: 2.2; }}
{series_style(LIGHT)}
@media (prefers-color-scheme: dark) {{
svg {{ background: #0d1117; }} text {{ fill: #e6edf3; }} .grid {{ stroke: #30363d; }}
.axis, .mark {{ stroke: #8b949e; }}
{series_style(DARK)}
}}
"""


def read_points(files):
    """One dictionary a point, in the order of the files."""
    for name in files:
        with open(name, encoding="utf-8") as f:
            for line in filter(str.strip, f):
                whole = json.loads(line)
                for row in whole.get("rows", [{}]):
                    yield {**whole, **row}


def field(point, template):
    if "{" in template:
        return re.sub(r"\{([^{}]+)\}", lambda m: text_of(point.get(m.group(1))), template).strip()
    return point.get(template)


def words(template):
    return re.sub("[{}]", "", template)


def text_of(value):
    return "" if value is None else str(value)


class Figure:
    """A field of a point to show: FIELD[/DIVISOR][=LABEL]."""

    def __init__(self, text):
        number, _, label = text.partition("=")
        self.field, _, divisor = number.partition("/")
        self.label, self.divisor = label or number, float(divisor or 1)

    def of(self, point):
        value = field(point, self.field)
        if isinstance(value, list):
            value = statistics.median(value) if value else None
        return None if value is None else float(value) / self.divisor


class Data:
    """The y of each series at each x, with both in the order of their first occurrence."""

    def __init__(self, points, options, numeric_x):
        samples = {}
        for figure in options.y:
            for point in points:
                if not all(text_of(point.get(k)) == v for k, v in options.where):
                    continue
                x, y = self.x_of(point, options, numeric_x), figure.of(point)
                if x is None or y is None:
                    continue
                series = self.series_of(point, figure, options)
                if not (options.omit and re.search(options.omit, series)):
                    samples.setdefault(series, {}).setdefault(x, []).append(y)
        self.y = {series: {x: statistics.median(all_y) for x, all_y in of_x.items()}
                  for series, of_x in samples.items()}
        xs = dict.fromkeys(x for of_x in self.y.values() for x in of_x)
        self.xs = sorted(xs) if numeric_x else list(xs)
        if not self.y:
            sys.exit("plot.py: no point has both x and y")

    @staticmethod
    def series_of(point, figure, options):
        if not options.series:
            return figure.label
        series = text_of(field(point, options.series))
        series = options.rename.get(series, series)
        return series if len(options.y) == 1 else f"{series} {figure.label}"

    @staticmethod
    def x_of(point, options, numeric_x):
        x = field(point, options.x)
        if options.x_match:
            found = re.search(options.x_match, text_of(x))
            x = found.group(1) if found else None
        if x is None:
            return None
        return float(x) if numeric_x else options.rename.get(str(x), str(x))

    def values(self):
        return [y for of_x in self.y.values() for y in of_x.values()]


def short(number):
    if number == 0 or 0.01 <= abs(number) < 10000:
        return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.1e}"


class Scale:
    """Numbers to positions between two pixels, and where the ticks are."""

    def __init__(self, numbers, log, begin, end, from_zero=False):
        self.log, self.begin, self.end = log, begin, end
        low, high = min(numbers), max(numbers)
        if log:
            if low <= 0:
                sys.exit("plot.py: a logarithmic axis has only positive numbers")
            self.ticks = self.log_ticks(low, high)
        else:
            self.ticks = self.even_ticks(min(low, 0) if from_zero else low, high)
        self.low = min(low, self.ticks[0])
        self.high = max(high, self.ticks[-1])

    def at(self, number):
        place = math.log10 if self.log else float
        span = place(self.high) - place(self.low) or 1
        return self.begin + (place(number) - place(self.low)) / span * (self.end - self.begin)

    @staticmethod
    def even_ticks(low, high):
        raw = (high - low or abs(high) or 1) / 5
        unit = 10 ** math.floor(math.log10(raw))
        step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= raw * 0.999)
        first, last = math.floor(low / step), math.ceil(high / step)
        return [i * step for i in range(first, max(last, first + 1) + 1)]

    @staticmethod
    def log_ticks(low, high):
        """The powers of ten around; between them, if they are few, also 2 and 5 times one."""
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        factors = (1,) if last - first > 3 else (1, 2, 5)
        ticks = [f * 10.0 ** e for e in range(first, last + 1) for f in factors]
        inner_low = max(t for t in ticks if t <= low * 1.0001)
        inner_high = min((t for t in ticks if t >= high * 0.9999), default=ticks[-1])
        return [t for t in ticks if inner_low <= t <= inner_high]


class Chart:
    def __init__(self, data, options):
        self.data, self.options, self.parts = data, options, []
        legend_bottom = TOP + self.draw_legend()
        self.turned = options.kind == "bar" and self.labels_are_wide()
        longest = max(len(x) for x in data.xs) if self.turned else 0
        label_height = longest * CHARACTER_WIDTH * 0.71 + 16 if self.turned else LABEL_HEIGHT
        self.top, self.bottom = legend_bottom, HEIGHT - X_TITLE_HEIGHT - label_height
        numbers = data.values() + [value for _, value in options.mark]
        self.y = Scale(numbers, options.log_y, self.bottom, self.top,
                       from_zero=not options.log_y)

    def labels_are_wide(self):
        room = (WIDTH - LEFT - RIGHT) / len(self.data.xs)
        return any(len(x) * CHARACTER_WIDTH > room for x in self.data.xs)

    def add(self, tag, text=None, **attributes):
        names = " ".join(f"{k.rstrip('_').replace('_', '-')}={quoteattr(number_text(v))}"
                         for k, v in attributes.items())
        self.parts.append(f"<{tag} {names}/>" if text is None
                          else f"<{tag} {names}>{escape(text)}</{tag}>")

    def draw_legend(self):
        """Returns its height."""
        x, y = LEFT, TOP + 4
        for i, series in enumerate(self.data.y):
            width = len(series) * CHARACTER_WIDTH + 34
            if x + width > WIDTH - RIGHT and x > LEFT:
                x, y = LEFT, y + LEGEND_LINE_HEIGHT
            self.add("rect", class_=f"bar c{i % COLOURS}", x=x, y=y - 9, width=12, height=10)
            self.add("text", series, x=x + 17, y=y)
            x += width
        return y - TOP + 14

    def draw(self):
        options = self.options
        label = options.y[0].label
        self.add("text", options.title or f"{label} by {words(options.x)}", class_="title",
                 x=LEFT, y=22)
        middle = (LEFT + WIDTH - RIGHT) / 2
        self.add("text", words(options.x) if options.x_label is None else options.x_label, x=middle, y=HEIGHT - 8,
                 text_anchor="middle")
        centre = (self.top + self.bottom) / 2
        self.add("text", options.y_label or label, x=16, y=centre, text_anchor="middle",
                 transform=f"rotate(-90 16 {centre:.1f})")
        for tick in self.y.ticks:
            at = self.y.at(tick)
            self.add("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at)
            self.add("text", short(tick), x=LEFT - 6, y=at + 4, text_anchor="end")
        (self.draw_bars if options.kind == "bar" else self.draw_lines)()
        for label, value in options.mark:
            at = self.y.at(value)
            self.add("line", class_="mark", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at)
            self.add("text", label, x=WIDTH - RIGHT, y=at - 4, text_anchor="end")
        self.add("line", class_="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=self.bottom, y2=self.bottom)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
                f'width="{WIDTH}" height="{HEIGHT}" role="img">\n<style>{STYLE}</style>\n'
                + "\n".join(self.parts) + "\n</svg>\n")

    def draw_bars(self):
        group = (WIDTH - LEFT - RIGHT) / len(self.data.xs)
        bar = group * 0.8 / len(self.data.y)
        floor = self.y.at(self.y.low if self.options.log_y else 0)
        for i, x in enumerate(self.data.xs):
            left = LEFT + i * group
            self.draw_label(x, left + group / 2)
            for j, (series, of_x) in enumerate(self.data.y.items()):
                if x not in of_x:
                    continue
                at = self.y.at(of_x[x])
                self.parts.append(f'<g><title>{escape(f"{series}, {x}: {short(of_x[x])}")}</title>')
                self.add("rect", class_=f"bar c{j % COLOURS}", x=left + group * 0.1 + j * bar,
                         y=min(at, floor), width=bar * 0.92, height=abs(floor - at))
                self.parts.append("</g>")

    def draw_label(self, text, x):
        if self.turned:
            y = self.bottom + 14
            self.add("text", text, x=x, y=y, text_anchor="end",
                     transform=f"rotate(-45 {x:.1f} {y:.1f})")
        else:
            self.add("text", text, x=x, y=self.bottom + 16, text_anchor="middle")

    def draw_lines(self):
        scale = Scale(self.data.xs, self.options.log_x, LEFT + 8, WIDTH - RIGHT - 8)
        few = len(self.data.xs) <= 10
        ticks = self.data.xs if few else scale.ticks
        last_right = -math.inf
        for tick in ticks:
            x, label = scale.at(tick), short(tick)
            half = len(label) * CHARACTER_WIDTH / 2
            if x - half < last_right + 4:
                continue
            last_right = x + half
            self.add("line", class_="grid", x1=x, x2=x, y1=self.top, y2=self.bottom)
            self.add("text", label, x=x, y=self.bottom + 16, text_anchor="middle")
        for i, (series, of_x) in enumerate(self.data.y.items()):
            met = of_x if self.options.in_order else sorted(of_x)
            points = [(scale.at(x), self.y.at(of_x[x]), x) for x in met]
            self.add("polyline", class_=f"line c{i % COLOURS}",
                     points=" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points))
            for px, py, x in points:
                self.parts.append(f'<g><title>{escape(f"{series}, {short(x)}: {short(of_x[x])}")}'
                                  "</title>")
                self.add("circle", class_=f"dot c{i % COLOURS}", cx=px, cy=py, r=3.2)
                self.parts.append("</g>")


def number_text(value):
    return value if isinstance(value, str) else f"{value:.1f}"


def table_of(data, options):
    """A line for each x, a column for each series."""
    head = [options.x_label or words(options.x), *data.y]
    lines = [head, ["---"] + ["---:"] * len(data.y)]
    for x in data.xs:
        lines.append([x] + [format_of(of_x[x], options) if x in of_x else "-"
                            for of_x in data.y.values()])
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n"
                   for line in lines)


def format_of(number, options):
    return options.format.format(number) if options.format else short(number)


def origin_of(points):
    """The commands and machines by which these points were measured."""
    commands = "\n".join(dict.fromkeys(point["command"] for point in points))
    origins = dict.fromkeys(f"{point['machine']}; {point['date']}; commit {point['commit']}."
                            for point in points)
    return f"```sh\n{commands}\n```\n\n" + "\n".join(origins) + "\n"


def put_into(page, section, text):
    begin, end = f"<!-- figures of {section} -->\n", f"<!-- end of {section} -->\n"
    with open(page, encoding="utf-8") as f:
        whole = f.read()
    if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(begin) > whole.index(end):
        sys.exit(f"plot.py: {page} has no section {section}")
    head, rest = whole.split(begin)
    tail = rest.split(end)[1]
    write(page, f"{head}{begin}\n{text}\n{end}{tail}")


def write(name, text):
    with open(name, "w", encoding="utf-8") as f:
        f.write(text)


def pair(text):
    name, equals, value = text.rpartition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: name=value is expected")
    return name, value


def mark(text):
    name, value = pair(text)
    return name, float(value)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="plot.py", description="SVG charts and markdown tables")
    parser.add_argument("kind", choices=["bar", "line", "table"])
    parser.add_argument("files", nargs="+", help="JSON objects, one a line")
    parser.add_argument("--x", required=True, help="field or {field} template")
    parser.add_argument("--x-match", help="x is the first group of this regular expression")
    parser.add_argument("--y", required=True, type=Figure, action="append",
                        help="field, field/divisor, field=label")
    parser.add_argument("--omit", help="regular expression of columns to leave out")
    parser.add_argument("--series", help="field or {field} template")
    parser.add_argument("--where", type=pair, action="append", default=[], help="field=value")
    parser.add_argument("--rename", type=pair, action="append", default=[], help="as met=as shown")
    parser.add_argument("--mark", type=mark, action="append", default=[],
                        help="label=y: a dashed line across")
    parser.add_argument("--title")
    parser.add_argument("--x-label")
    parser.add_argument("--y-label")
    parser.add_argument("--log-x", action="store_true")
    parser.add_argument("--log-y", action="store_true")
    parser.add_argument("--in-order", action="store_true", help="of a line's points")
    parser.add_argument("--format", help="of a table's numbers; three digits if not given")
    parser.add_argument("--out", help="file to write; standard output if not given")
    parser.add_argument("--into", help="page to put a table into, with how it was made")
    parser.add_argument("--section", help="of that page")
    parser.add_argument("--image", help="file of the chart, as that page names it")
    options = parser.parse_args(arguments)
    options.rename = dict(options.rename)
    if len(options.y) > 1 and options.kind != "table":
        parser.error("a chart has one --y")
    if bool(options.into) != bool(options.section) or (options.into and options.kind != "table"):
        parser.error("--into needs a table and a --section")
    return options


def main(arguments):
    options = parse(arguments)
    points = list(read_points(options.files))
    data = Data(points, options, numeric_x=options.kind == "line")
    text = table_of(data, options) if options.kind == "table" else Chart(data, options).draw()
    if options.into:
        image = f"![{options.section}]({options.image})\n\n" if options.image else ""
        put_into(options.into, options.section, f"{image}{text}\n{origin_of(points)}")
    elif options.out:
        write(options.out, text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
