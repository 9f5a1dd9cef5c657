"""Tables in Markdown and plots, from the file of results alone.

``python -m benchmarks.erm.report`` prints the tables and writes them, with one plot a
set, under ``benchmarks/outputs/erm``.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from math import inf
from statistics import mean, median, stdev

from benchmarks.erm import results
from benchmarks.erm.columns import COLUMNS
from benchmarks.erm.data import OUTPUTS, SETS

# Accuracy of the default to reach, by set and epsilon
BARS: dict[str, dict[float, float]] = {
    "synthetic_l": {0.1: 0.893},
    "synthetic_l40": {0.1: 0.893},  # the released generator of the same set
    "adult": {0.1: 0.803},
    "kddcup99": {0.1: 0.987},
    "covertype": {0.1: 0.690, 1.0: 0.708},
    "mnist": {1.0: 0.870},
    "synthetic_h": {0.1: 0.576},
}
LOSSES = {"logistic": "logistic regression", "svm": "huberized SVM"}
USUAL_RUNS = 10


def grouped(lines):
    """Return the accuracies of each set, loss, column and epsilon, run by run."""
    found = defaultdict(list)
    for line in lines:
        if line.accuracy is not None:
            key = line.name, line.loss, line.column, line.epsilon
            found[key].append((line.run, line.accuracy))
    return {key: [a for _, a in sorted(runs)] for key, runs in found.items()}


def reasons(lines):
    """Return why a fit has no accuracy, for those that have none in any run."""
    found = {}
    for line in lines:
        if line.accuracy is None:
            found[line.name, line.loss, line.column, line.epsilon] = line.note
    return found


def cell(accuracies, most=USUAL_RUNS):
    """Return mean and standard deviation in percent, and the runs if they are few."""
    text = f"{100 * mean(accuracies):.1f}"
    if len(accuracies) > 1:
        text += f" ± {100 * stdev(accuracies):.1f}"
    return text if len(accuracies) >= most else f"{text} ({len(accuracies)})"


def bars(lines) -> str:
    """Return the table of the default against its bars."""
    accuracies, why = grouped(lines), reasons(lines)
    rows = []
    for name, wanted in BARS.items():
        for epsilon, bar in wanted.items():
            for loss, title in LOSSES.items():
                key = name, loss, "default", epsilon
                if key in accuracies:
                    found = accuracies[key]
                    ok = "yes" if mean(found) >= bar else "no"
                    rows.append([name, title, epsilon, cell(found), 100 * bar, ok])
                else:
                    missing = why.get(key, "not run")
                    rows.append([name, title, epsilon, "", 100 * bar, missing])
    return table(["set", "loss", "ε", "default", "bar", "reached"], rows)


def published(lines) -> str:
    """Return our figures beside the published ones, at the published epsilon."""
    accuracies = grouped(lines)
    rows = []
    for name, source in SETS.items():
        for loss, figures in (source.published or {}).items():
            ours = [
                _cell_of(accuracies, (name, loss, column, epsilon))
                for column, epsilon in (
                    ("non_private", inf),
                    ("hf_amp", source.at),
                    ("default", source.at),
                )
            ]
            plain, untuned, best = figures
            pairs = [plain, ours[0], untuned, ours[1], best, ours[2]]
            rows.append([name, LOSSES[loss], source.at, *pairs])
    head = ["set", "loss", "ε", "non-private, published", "ours"]
    head += ["H-F AMP, published", "ours", "best tuned, published", "our default"]
    return table(head, rows)


def _cell_of(accuracies, key):
    return cell(accuracies[key]) if key in accuracies else ""


def solvers(lines, name, loss) -> str:
    """Return the table of one set and loss: a row a column, a column an epsilon."""
    accuracies, why = grouped(lines), reasons(lines)
    found = [k for k in (*accuracies, *why) if k[:2] == (name, loss)]
    epsilons = sorted({k[3] for k in found if k[3] < inf})
    rows = []
    notes: dict[str, int] = {}
    for column in COLUMNS.values():
        plain = accuracies.get((name, loss, column.name, inf))
        if not column.private:
            text = cell(plain) if plain else why.get((name, loss, column.name, inf), "")
            rows.append([column.title, *([text] * len(epsilons))])
            continue
        cells = []
        for epsilon in epsilons:
            key = name, loss, column.name, epsilon
            if key in accuracies:
                cells.append(cell(accuracies[key]))
            elif key in why:
                cells.append(f"[{notes.setdefault(why[key], len(notes) + 1)}]")
            else:
                cells.append("")
        if any(cells):
            rows.append([column.title, *cells])
        else:
            rows.append([column.title, *["not run"] * len(epsilons)])
    text = table(["", *(f"ε = {e:g}" for e in epsilons)], rows)
    listed = "\n".join(f"[{position}] {note}  " for note, position in notes.items())
    return f"{text}\n\n{listed}" if listed else text


def table(head, rows) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_text(c) for c in line) + " |" for line in lines)


def _text(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def markdown() -> str:
    """Return all tables, bars first."""
    lines = results.read()
    parts = [
        "# Private empirical risk minimization",
        "Test accuracy in percent, mean ± standard deviation of "
        f"{USUAL_RUNS} runs (fewer where a number in parentheses says so); the "
        "same 80/20 splits for all; replacing a row, δ = 1/n². diffprivlib promises "
        "pure ε. Nothing is tuned except where noted.",
        _origin(lines),
        "## Bars of the default",
        bars(lines),
        "## Against the published figures",
        "The published private figures are the best of a grid chosen on the test "
        "rows, except for H-F AMP.",
        published(lines),
    ]
    for name in SETS:
        for loss, title in LOSSES.items():
            if any(line.name == name and line.loss == loss for line in lines):
                parts += [f"## {name}, {title}", solvers(lines, name, loss)]
    return "\n\n".join(parts) + "\n"


def _origin(lines) -> str:
    """Say whether all figures come from one state of the library."""
    counts = Counter(line.code for line in lines)
    if len(counts) <= 1:
        return f"All figures are of the library as of {', '.join(counts) or 'now'}."
    listed = ", ".join(f"{code} ({n} fits)" for code, n in counts.most_common())
    return (
        f"**The figures are of {len(counts)} states of the library**: {listed}. Run "
        "with --same-code to measure all with the present one."
    )


def cost(jobs) -> str:
    """Return the CPU time of jobs by column, from the mean of measured fits.

    What was not measured is guessed from the time of the default on the same set, and
    from how the column compares with it on others.
    """
    found = defaultdict(list)
    for line in results.read():
        found[line.name, line.loss, line.column].append(line.cpu_s)
    seconds = {key: mean(values) for key, values in found.items()}
    ratios = defaultdict(list)
    for (name, loss, column), took in seconds.items():
        default = seconds.get((name, loss, "default"))
        if default:
            ratios[column].append(took / default)
    known, guessed, unknown = Counter(), Counter(), Counter()
    for job in jobs:
        key, fits = (job.name, job.loss, job.column), len(job.epsilons)
        default = seconds.get((job.name, job.loss, "default"))
        if key in seconds:
            known[job.column] += seconds[key] * fits
        elif default and ratios[job.column]:
            guessed[job.column] += median(ratios[job.column]) * default * fits
        else:
            unknown[job.column] += fits
    rows = [
        [c.title, *_minutes(known[c.name], guessed[c.name]), unknown[c.name]]
        for c in COLUMNS.values()
    ]
    rows.append(["all", *_minutes(known.total(), guessed.total()), unknown.total()])
    head = ["column", "CPU minutes, from fits measured", "guessed", "fits unknown"]
    return table(head, rows)


def _minutes(*seconds):
    return [f"{s / 60:.1f}" for s in seconds]


def plots() -> list[str]:
    """Write one plot a set, a panel a loss; return the files."""
    import matplotlib  # noqa: PLC0415 - only for plots

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    accuracies = grouped(results.read())
    files = []
    for name in SETS:
        if not any(key[0] == name for key in accuracies):
            continue
        figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
        for axis, (loss, title) in zip(axes, LOSSES.items(), strict=True):
            for position, column in enumerate(COLUMNS.values()):
                found = sorted(
                    (key[3], 100 * mean(values), 100 * _spread(values))
                    for key, values in accuracies.items()
                    if key[:3] == (name, loss, column.name)
                )
                if not found:
                    continue
                label = column.title.replace("*", "")
                if not column.private:
                    axis.axhline(found[0][1], color="gray", ls=":", label=label)
                    continue
                epsilons, means, spreads = zip(*found, strict=True)
                width = 2.4 if column.name == "default" else 1.1
                axis.errorbar(
                    epsilons,
                    means,
                    spreads,
                    color=f"C{position % 10}",
                    lw=width,
                    marker="o",
                    ms=3,
                    capsize=2,
                    label=label,
                )
            axis.set(xscale="log", xlabel="ε", title=f"{name}, {title}")
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("test accuracy, %")
        # a column may be missing from one of the panels
        shown = {}
        for axis in axes:
            handles, labels = axis.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        axes[1].legend(
            shown.values(),
            shown.keys(),
            fontsize=7,
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
        )
        figure.tight_layout()
        file = OUTPUTS / f"{name}.png"
        figure.savefig(file, dpi=130)
        pyplot.close(figure)
        files.append(str(file))
    return files


def _spread(values):
    return stdev(values) if len(values) > 1 else 0.0


def main() -> int:
    text = markdown()
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "accuracy.md").write_text(text)
    print(text)
    for file in plots():
        print(f"plot: {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
