"""What the report shows of one comparison: tables, figures, settings, as pieces of HTML."""

from __future__ import annotations

import json

import pandas as pd

from analysis import html
from analysis.compare import GROUP, OPTION, Comparison
from analysis.figures import (
    METRIC_LABELS,
    compute_figure,
    figure_png,
    heatmap_figure,
    mean_heatmaps,
)
from analysis.tables import (
    HIDDEN_FOREGROUND,
    comparison_cells,
    cut_text,
    footnotes,
    interval,
    nats,
    network_text,
    number,
    percent,
    rates,
)


def section_title(comparison: Comparison) -> str:
    """What tells one comparison of a results directory from another."""
    cell = comparison.at_budget.iloc[0]
    return (
        f"{cell['task']}, m={cell['m']}, n={cell['n']}, {network_text(cell)}, "
        f"{cell['split_scheme']} bases, budget "
        f"{number(cell['budget_amount'])} {_unit(cell)} ({cell['comparison_id'][:8]})"
    )


def _unit(cell: pd.Series) -> str:
    return "FLOPs" if cell["budget_unit"] == "flops" else str(cell["budget_unit"])


def comparison_section(comparison: Comparison, published: bool = False) -> list[str]:
    """The section below its title, as pieces of HTML."""
    body = [html.paragraph(warning, "warning") for warning in _warnings(comparison)]
    if len(comparison.summary):
        body += _results(comparison, published) + _pictures(comparison)
    return body + _options(comparison) + _cells(comparison) + _settings(comparison)


def stopped_options(comparison: Comparison) -> list[str]:
    """One sentence for each paradigm some options of which were stopped early."""
    texts = []
    for name, options in comparison.options.groupby("paradigm", sort=False):
        censored = int((options["num_censored"] > 0).sum())
        if censored == len(options):
            texts.append(f"{name}: every option has a censored seed, so none can be chosen.")
        elif censored:
            texts.append(
                f"{name}: {censored} of {len(options)} options were stopped early and cannot be "
                "chosen."
            )
    return texts


def _warnings(comparison: Comparison) -> list[str]:
    texts = stopped_options(comparison)
    if (comparison.choice["select"] == "saif").any():
        texts.append(f"Options were {HIDDEN_FOREGROUND}.")
    return texts + edge_warnings(comparison.options, comparison.choice)


def edge_warnings(options: pd.DataFrame, choice: pd.DataFrame) -> list[str]:
    """One sentence for each chosen learning rate that is the smallest or largest tried.

    Args:
        options: as `analysis.compare.options` gives it.
        choice: as `analysis.choose` gives it.
    """
    texts = []
    for pick in choice.to_dict("records"):
        tried = options[(options[GROUP] == pd.Series(pick)[GROUP]).all(axis=1)]
        rates_of = {"learning rate": "lr"}
        if not pd.isna(pick["switch_point"]):
            rates_of = {"first learning rate": "lr", "last learning rate": "last_lr"}
        for name, column in rates_of.items():
            grid = sorted(tried[column].unique())
            if len(grid) > 1 and pick[column] in (grid[0], grid[-1]):
                end = "smallest" if pick[column] == grid[0] else "largest"
                texts.append(
                    f"{pick['paradigm']}: the chosen {name} {number(pick[column])} is the {end} "
                    f"of the {len(grid)} tried; a better one may lie beyond the grid."
                )
    return texts


def _results(comparison: Comparison, published: bool) -> list[str]:
    summary = comparison.summary
    header, rows = comparison_cells(summary, published)
    body = [
        html.subsection("Comparison"),
        html.paragraph(f"Mean over seeds on the {cut_text(summary)}."),
        html.table(header, rows),
        *(html.paragraph(note, "quiet") for note in footnotes(summary)),
    ]
    level = f"{summary['confidence'].iloc[0] * 100:g} % interval"
    more = []
    for row in summary.to_dict("records"):
        cells = [row["paradigm"], percent(row["foreground_attention_mean"])]
        cells += [interval(row, "foreground_attention_mean"), nats(row["loss"])]
        more.append([*cells, interval(row, "loss", nats)])
    header = ["paradigm", "mean foreground attention %", level, "loss (nats)", level]
    return [*body, html.table(header, more)]


def _pictures(comparison: Comparison) -> list[str]:
    body = []
    for split in ("test", "train"):
        heatmaps = mean_heatmaps(comparison.at_budget, comparison.choice, split)
        if heatmaps:
            items = [
                (
                    figure_png(heatmap_figure({name: heatmap}, f"{split} split")),
                    f"Heat map of {name} on the {split} split; SAIF {percent(heatmap[-1, -1])} %",
                )
                for name, heatmap in heatmaps.items()
            ]
            body += [html.subsection(f"Heat maps, {split} split"), html.pictures(items)]
            text = "Mean over the seeds of the chosen option; diverged seeds have no heat map."
            body.append(html.paragraph(text, "quiet"))
    items = [
        (
            figure_png(compute_figure(comparison.evaluations, metric)),
            f"{label} of each paradigm against training compute, test split",
        )
        for metric, label in METRIC_LABELS.items()
    ]
    return [*body, html.subsection("Against compute"), html.pictures(items, wide=True)]


def _options(comparison: Comparison) -> list[str]:
    keys = GROUP + OPTION
    picks = pd.MultiIndex.from_frame(comparison.choice[keys])
    chosen = pd.MultiIndex.from_frame(comparison.options[keys]).isin(picks)
    header = ["paradigm", "learning rate", "switch point", "n", "diverged", "censored"]
    header += ["validation accuracy %", "validation SAIF %", "validation loss", ""]
    rows = [
        [
            row["paradigm"],
            rates(row),
            number(row["switch_point"]),
            *(str(row[name]) for name in ("num_seeds", "num_diverged", "num_censored")),
            percent(row["validation_accuracy"], 2),
            percent(row["validation_saif"], 2),
            nats(row["validation_loss"]),
            "chosen" if picked else "",
        ]
        for row, picked in zip(comparison.options.to_dict("records"), chosen, strict=True)
    ]
    marked = [i for i, picked in enumerate(chosen) if picked]
    return [
        html.subsection("Learning rates and switch points, by validation score"),
        html.table(header, rows, left=(0, 9), marked=marked),
    ]


def _cells(comparison: Comparison) -> list[str]:
    cells = comparison.at_budget.drop_duplicates("cell_id")
    counts = cells.groupby(["paradigm", "status"], sort=False).size().reset_index(name="cells")
    body = [
        html.subsection("Cells by end state"),
        html.table(
            ["paradigm", "ended as", "cells"],
            counts.astype(str).to_numpy().tolist(),
            left=(0, 1),
        ),
    ]
    ended_early = cells[cells["status"] != "done"]
    if len(ended_early):
        header = ["paradigm", "learning rate", "switch point", "seed", "ended as"]
        header += ["last evaluation at % of budget", "SAIF % there", "accuracy % there", "reason"]
        rows = [
            [
                row["paradigm"],
                rates(row),
                number(row["switch_point"]),
                str(row["seed"]),
                row["status"],
                percent(row["budget_fraction"], 0),
                percent(row["last_saif"]),
                percent(row["last_accuracy"]),
                str(row["status_reason"] or "-"),
            ]
            for row in ended_early.to_dict("records")
        ]
        body.append(html.paragraph("Cells that did not run to the end, on the test split:"))
        body.append(html.table(header, rows, left=(0, 4, 8)))
    return body


def _settings(comparison: Comparison) -> list[str]:
    cells = comparison.at_budget.drop_duplicates("cell_id")
    first = cells.iloc[0]
    train_seconds = (cells["total_train_seconds"] / cells["pack"]).sum()
    rows = [
        ["task", first["task"]],
        ["segments m", str(first["m"])],
        ["training mosaics n", str(first["n"])],
        ["architecture", first["architecture"]],
        ["batch size", str(first["batch_size"])],
        ["budget", f"{first['budget_amount']:,d} {_unit(first)}"],
        ["data digest", first["data_digest"]],
        ["split", first["split_scheme"]],
        *_other_settings(first["cell"]),
        ["seeds", _listed(cells["seed"])],
        ["studies", _listed(cells["study"])],
        ["device", _listed(cells["device"])],
        ["CPU threads", _listed(cells["threads"])],
        ["cells trained together", _listed(cells["pack"])],
        ["mosaics a pass", _listed(cells["micro_batch"])],
        ["code version", _listed(cells["code_version"])],
        ["package versions", _listed(cells["package_versions"].map(_versions))],
        ["training time, all cells", f"{train_seconds:,.0f} s"],
        ["last cell finished", str(cells["finished_at"].max())],
    ]
    return [html.subsection("Settings"), html.table([], rows, left=(0, 1), wrap=True)]


def _other_settings(cell: str) -> list[list[str]]:
    """What else the cells of a comparison share, from the JSON of one of them."""
    named = {"task", "m", "n", "architecture", "batch_size", "budget", "data_digest", "split"}
    values = json.loads(cell)
    return [
        [name.replace("_", " "), ", ".join(map(str, v)) if isinstance(v, list) else str(v)]
        for name, v in sorted(values.items())
        if name not in named | {"schedule", "seed"}
    ]


def _versions(text: str) -> str:
    """``{"torch": "2.9"}`` -> ``torch 2.9``; any other text stays as it is."""
    try:
        versions = json.loads(text)
    except ValueError:
        return text
    if not isinstance(versions, dict):
        return text
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def _listed(values: pd.Series) -> str:
    return "; ".join(map(str, sorted(values.dropna().unique())))
