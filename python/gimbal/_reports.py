"""Plans, explanations and receipts: dicts and lists with the names of the C++ structs, shown as tables."""

import html


def size(n):
    """Bytes for people: 1.4 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:.1f} TB"


def text_table(rows):
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def html_table(rows):
    def line(tag, row):
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in row) + "</tr>"

    return "<table>" + line("th", rows[0]) + "".join(line("td", row) for row in rows[1:]) + "</table>"


class _Shown:
    def _tables(self):
        raise NotImplementedError

    def __str__(self):
        return "\n\n".join(f"{title}\n{text_table(rows)}" for title, rows in self._tables())

    def _repr_html_(self):
        return "".join(f"<p><b>{html.escape(title)}</b></p>{html_table(rows)}" for title, rows in self._tables())


def _layers(p):
    parts = [f"layers {p['first_layer']} to {p['first_layer'] + p['layers'] - 1}"] if p["layers"] else []
    parts += ["embedding"] if p["embedding"] else []
    parts += ["head"] if p["head"] else []
    return ", ".join(parts)


def _memory(memory):
    kinds = ("weights", "cache", "activations", "step", "output", "scratch", "sessions", "total", "free")
    return [("memory", *kinds)] + [(m["device"] or "host", *(size(m[k]) for k in kinds)) for m in memory]


class Plan(_Shown, dict):
    """Where a model would lie and what it would take. Keys: docs/python.md."""

    def _tables(self):
        yield (f"{self['name']}: {self['architecture']}, {self['layers']} layers, context {self['context']} of {self['trained_context']}",
               [("device", "part", "reason")] + [(p["device"], _layers(p), p["why"]) for p in self["placement"]])
        yield "fits" if self["fits"] else f"does not fit: {self['misfit']['message']}", _memory(self["memory"])

    def __repr__(self):
        return f"<gimbal.Plan of {self['name']}: {'fits' if self['fits'] else 'does not fit'}>"


class Explanation(_Shown, dict):
    """The plan, and the kernel of every op with the reason for it."""

    def _tables(self):
        yield from Plan(self["plan"])._tables()
        yield "kernels", [("op", "format", "device", "kernel", "reason")] + [
            (c["op"], c["format"], c["device"], c["kernel"], c["why"]) for c in self["choices"]]

    def __repr__(self):
        return f"<gimbal.Explanation of {self['plan']['name']}: {len(self['choices'])} choices>"


class Receipt(_Shown, list):
    """The kernels that ran, each with its ops and runs."""

    def _tables(self):
        yield "kernels that ran", [("op", "format", "device", "kernel", "runs", "reason")] + [
            (r["op"], r["format"], r["device"], r["kernel"], r["not_counted"] or r["runs"], r["why"]) for r in self]

    def __repr__(self):
        return f"<gimbal.Receipt of {len(self)} kernels>"


class RecordedPlan(_Shown, dict):
    """Bytes of a recorded function: its arguments, results, tensors from outside, intermediate values with and without shared memory."""

    def _tables(self):
        kinds = ("arguments", "results", "outside", "work", "apart")
        yield f"{self['operations']} operations", [kinds, tuple(size(self[k]) for k in kinds)]

    def __repr__(self):
        return f"<gimbal.RecordedPlan of {self['operations']} operations: {size(self['work'])} of work>"


class Operations(_Shown, list):
    """The operations of a recorded function, each with its kernel and the reason for it."""

    def _tables(self):
        yield "operations", [("op", "inputs", "output", "kernel", "reason")] + [
            (o["op"], ", ".join(o["inputs"]), o["output"], o["kernel"], o["why"]) for o in self]

    def __repr__(self):
        return f"<gimbal.Operations: {len(self)}>"
